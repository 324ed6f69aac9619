"""Scopes as they are stored: names separated by spaces."""

from __future__ import annotations

from collections.abc import Iterable


def joined(scopes: Iterable[str]) -> str:
    """Returns scopes as text, in alphabetical order."""
    return " ".join(sorted(scopes))


def split(text: str) -> frozenset[str]:
    """Returns the scopes of a text."""
    return frozenset(text.split())
