"""Names from a list: refused if unknown, with the one that was probably meant."""

from __future__ import annotations

from collections.abc import Collection

from openbell.market.errors import InvalidParameter


def hint(value: object, allowed: Collection[str]) -> str:
    """The nearest of the allowed names, whether written large or small: "; did you mean 'rsi'?"; empty if none is near."""
    from difflib import get_close_matches  # only mistakes pay for it

    small = {name.lower(): name for name in allowed}
    near = get_close_matches(str(value)[:80].lower(), small, n=1)
    return f"; did you mean {small[near[0]]!r}?" if near else ""


def one_of(name: str, value: object, allowed: Collection[str]) -> None:
    """Raise `InvalidParameter` for what is not in a list, naming the nearest that is."""
    if value not in allowed:
        said = repr(value)
        shown = said if len(said) <= 80 else said[:77] + "..."
        raise InvalidParameter(f"{name} must be one of {', '.join(allowed)}, not {shown}{hint(value, allowed)}")
