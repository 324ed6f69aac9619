"""Numbers with their noun, for output and messages."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Returns `1 bar`, `2 bars` or `1,250 bars`; `plural` is needed if it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
