"""Counts and lengths of time in words, for output and messages."""

from __future__ import annotations

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"))


def counted(count: int, noun: str, plural: str = "") -> str:
    """Returns `1 bar`, `2 bars` or `1,250 bars`; `plural` is needed if it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def in_words(seconds: float) -> str:
    """Returns a duration in its two largest units: `38 days and 3 hours`, `5 hours`, `12 minutes`, `0 minutes`."""
    rest = int(seconds) // 60 * 60
    first = next((place for place, (unit, _) in enumerate(_UNITS) if rest >= unit), len(_UNITS) - 1)
    parts: list[str] = []
    for unit, name in _UNITS[first : first + 2]:
        count, rest = divmod(rest, unit)
        if count or not parts:
            parts.append(counted(count, name))
    return " and ".join(parts)
