"""Checks a name against a list of allowed names, and suggests the closest one."""

from __future__ import annotations

from collections.abc import Collection

from openbell.market.errors import InputError, InvalidParameter


def did_you_mean(value: object, allowed: Collection[str], least: float = 0.6) -> str:
    """Returns "; did you mean 'rsi'?" with the closest allowed name, ignoring case; "" if no name is close.

    `least` is the smallest similarity that counts as close, from 0 to 1.
    """
    from difflib import get_close_matches  # imported only after a mistake: it is slow to load

    small = {name.lower(): name for name in allowed}
    near = get_close_matches(str(value)[:80].lower(), small, n=1, cutoff=least)
    return f"; did you mean {small[near[0]]!r}?" if near else ""


def check_one_of(
    name: str, value: object, allowed: Collection[str], error: type[InputError] = InvalidParameter
) -> None:
    """Raises an error of a class if `value` is not allowed: with the closest allowed name, and all of them as details."""
    if value not in allowed:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        raise error(
            f"{name} must be one of {', '.join(allowed)}, not {shown}{did_you_mean(value, allowed)}",
            **{name: str(value)[:80], "accepted": list(allowed)},
        )
