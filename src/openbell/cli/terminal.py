"""What commands write: standard output and error, and what happens if they cannot be written; and files.

On a terminal no printed text from outside controls it. Pipes and files get exact texts. A file is checked
before the work starts, and replaced at once when it is done.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from openbell.desk.settings.private_files import as_user_wants
from openbell.market.errors import InvalidParameter
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


def open_standard_streams() -> None:
    """A caller may have closed them; without this, the next file opened would take their place."""
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    # A command may replace these objects: their end must not close the descriptors.
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def exit_code_of(error: BaseException, code: str | int | None = None) -> int:
    """Give up output that cannot be written, and report it, unless its reader has closed the pipe.

    Returns the exit code, which is `code` if the command has failed by itself.
    """
    _let_go()
    if isinstance(error, BrokenPipeError):
        return 141
    cause = getattr(error, "strerror", None) or error
    effect = "what the command does may have taken effect: check before you repeat it"
    with suppress(OSError):
        print(f"openbell: {cause}; {effect}", file=sys.stderr, flush=True)  # noqa: T201 - for the person at the shell
    return code if isinstance(code, int) and code else 1


def _let_go() -> None:
    """Give up standard output, so that the interpreter does not try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@contextmanager
def progress(label: str, total: float, unit: str = "", least: float = 0) -> Iterator[Callable[[float], None]]:
    """Show a bar until the block ends; the function that it yields adds to what is done.

    `unit` is what is counted: bytes have their own form, without a unit only the share is shown. No bar is shown for less
    than `least`.
    """
    if total < least or not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich import progress as bar
    from rich.console import Console

    count = {"": bar.TaskProgressColumn, "bytes": bar.DownloadColumn}.get(unit, bar.MofNCompleteColumn)()
    columns = (bar.TextColumn(f"{label} {unit}".rstrip()), bar.BarColumn(), count, bar.TimeRemainingColumn())
    with bar.Progress(*columns, console=Console(file=raw(sys.stderr)), transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda done: shown.advance(task, done)


PICTURES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".svg": "svg"}
"""The format of a picture by the ending of its file."""


def check_output(file: Path, endings: Collection[str]) -> None:
    """Raises `InvalidParameter` if a file has another ending or cannot be written."""
    if file.suffix.lower() not in endings:
        raise InvalidParameter(f"{file} must end in {', '.join(endings)}")
    folder = file.resolve().parent
    if file.is_dir():
        raise InvalidParameter(f"cannot write {file}: it is a folder")
    if not folder.is_dir():
        raise InvalidParameter(f"cannot write {file}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise InvalidParameter(f"cannot write {file}: the folder {folder} is not writable")


def write_output(file: Path, data: bytes) -> None:
    """Write a temporary file and rename it, so that readers never see half a file. Raises `InvalidParameter`."""
    whole = file.resolve()
    temporary = whole.with_name(f".{whole.name}.{os.getpid()}")
    try:
        with as_user_wants():
            temporary.write_bytes(data)
        temporary.replace(whole)
    except OSError as error:
        raise InvalidParameter(f"cannot write {file}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)
