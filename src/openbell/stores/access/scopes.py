"""Scopes as they are stored: names separated by spaces. What one scope includes of others is defined here."""

from __future__ import annotations

from collections.abc import Iterable


def joined(scopes: Iterable[str]) -> str:
    """Returns scopes as text, in alphabetical order."""
    return " ".join(sorted(scopes))


def split(text: str) -> frozenset[str]:
    """Returns the scopes of a text."""
    return frozenset(text.split())


def with_included(scopes: Iterable[str]) -> frozenset[str]:
    """Returns scopes and those that they include: who may trade may also store."""
    found = frozenset(scopes)
    return found | {"write"} if "trade" in found else found


def left(granted: str, of_user: str) -> frozenset[str]:
    """Returns the scopes of a consent or token that its user still has."""
    return split(granted) & with_included(split(of_user))
