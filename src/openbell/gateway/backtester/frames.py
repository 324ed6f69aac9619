"""Frames, in which the service and its workers exchange bytes over pipes: a letter, a length and the content."""

from __future__ import annotations

import struct
from enum import Enum
from typing import BinaryIO

HEADER = struct.Struct("<cQ")


class FrameKind(Enum):
    """What a frame contains."""

    READY = b"+"
    """Nothing: the worker accepts requests."""
    METHOD = b"M"
    """The name of a method; its request follows."""
    REQUEST = b"Q"
    """A serialized request."""
    BEGUN = b"B"
    """Nothing: the worker has decoded a request, and runs it."""
    PROGRESS = b"P"
    """A serialized response that reports progress."""
    RESULT = b"R"
    """The serialized response with the result; the last frame of an answer."""
    ERROR = b"E"
    """The name of a gRPC status, a line feed and a message; the last frame of an answer."""


def framed(kind: FrameKind, content: bytes = b"") -> bytes:
    """Returns a frame."""
    return HEADER.pack(kind.value, len(content)) + content


def read_frame(pipe: BinaryIO) -> tuple[FrameKind, bytes] | None:
    """Returns the next frame, or None at the end of the pipe. Blocks."""
    header = pipe.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    letter, length = HEADER.unpack(header)
    content = pipe.read(length)
    return (FrameKind(letter), content) if len(content) == length else None
