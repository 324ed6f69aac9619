"""Standard output and error on a terminal: no printed text from outside controls it. Pipes and files get exact texts."""

from __future__ import annotations

import io
import sys
from typing import TextIO

from openbell.market.foreign_text import without_invisible


class VisibleText(io.TextIOWrapper):
    """A stream that removes what is not seen from everything that is written to it."""

    raw_stream: TextIO
    """The stream that it stands for, which would close the buffer of both at its own end."""

    def write(self, text: str) -> int:
        """Write a text without terminal sequences and other characters that are not seen; returns its whole length."""
        super().write(without_invisible(text))
        return len(text)


def clean_streams() -> None:
    """Clean everything that this process prints to a terminal from now on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper and stream.isatty():
            stream.flush()
            made = VisibleText(
                stream.buffer,
                stream.encoding,
                stream.errors,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            made.raw_stream = stream
            setattr(sys, name, made)


def raw(stream: TextIO) -> TextIO:
    """Returns a stream for what draws on the terminal by sequences of its own, and cleans its texts itself."""
    return getattr(stream, "raw_stream", stream)
