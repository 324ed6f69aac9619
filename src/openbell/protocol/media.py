"""Results with images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MediaPicture:
    """An image in a result."""

    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Media:
    """A result with images; the payload, if any, follows them as text unless `repeated`."""

    images: tuple[MediaPicture, ...]
    payload: dict[str, Any] | None = None
    repeated: bool = False
    """True if the payload has the images too, as text. It comes first then."""
