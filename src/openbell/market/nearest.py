"""The name that somebody who wrote an unknown one may have meant."""

from __future__ import annotations

from collections.abc import Collection


def hint(value: object, allowed: Collection[str]) -> str:
    """The nearest of the allowed names, whether written large or small: "; did you mean 'rsi'?"; empty if none is near."""
    from difflib import get_close_matches  # only mistakes pay for it

    small = {name.lower(): name for name in allowed}
    near = get_close_matches(str(value)[:80].lower(), small, n=1)
    return f"; did you mean {small[near[0]]!r}?" if near else ""
