"""Answers that are more than JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Picture:
    """An image in an answer."""

    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Media:
    """An answer with images; the payload, if there is one, follows them as text."""

    images: tuple[Picture, ...]
    payload: dict[str, Any] | None = None
