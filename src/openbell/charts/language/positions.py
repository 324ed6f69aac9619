"""Recognises positions: "long from 60k stop 58k target 66k", with the prices in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from openbell.charts.language.prices import doubts, plain, price_at
from openbell.charts.language.spans import Detection
from openbell.charts.language.words import Word

_ROLES = {
    **dict.fromkeys(("stop", "sl", "stoploss", "stops"), "stopPrice"),
    **dict.fromkeys(("target", "tp", "targets", "takeprofit"), "targetPrice"),
    **dict.fromkeys(("entry", "from", "at", "@", "enter", "entering", "entered", "bought", "sold"), "entryPrice"),
}
_FILLERS = frozenset(
    {"loss", "profit", "at", "of", "a", "the", "to", ":", "=", "@", "price", "is", "in", "around", "near", "from"}
)
_ORDER = ("entryPrice", "targetPrice", "stopPrice")
_NAMES = {"entryPrice": "entry", "stopPrice": "stop", "targetPrice": "target"}
_SIDES = {"long": "Long Position", "buy": "Long Position", "short": "Short Position", "sell": "Short Position"}
_FARTHEST = 30
"""Words after `long` that may belong to the position."""


@dataclass(frozen=True, slots=True)
class ClauseFound:
    """One or several drawings of a config, or why there is none."""

    drawings: tuple[dict[str, object], ...]
    warning: str = ""


def positions_in(sentence: str, words: Sequence[Word]) -> Iterator[Detection[ClauseFound]]:
    """Yields positions. Words between their prices, such as the instrument, do not belong to them."""
    for at, word in enumerate(words):
        if word.is_number or word.text not in _SIDES:
            continue
        for each in _position(words, at, _SIDES[word.text]):
            doubt = next(filter(None, (doubts(sentence, words, place, place + 1) for place in sorted(each.places))), "")
            yield replace(each, meaning=ClauseFound((), f"nothing is drawn: {doubt}")) if doubt else each


def _position(words: Sequence[Word], at: int, kind: str) -> Iterator[Detection[ClauseFound]]:
    found: dict[str, float] = {}
    used = {at}
    place = at + 1
    if (direct := price_at(words, place)) is not None and _has_exit(words, direct[0]):
        found["entryPrice"] = direct[1]
        used |= set(range(place, direct[0]))
        place = direct[0]
    while place < min(len(words), at + _FARTHEST) and len(found) < len(_ORDER):
        if words[place].text in {".", ";", "?", "!"} and not words[place].is_number and found:
            break
        step = _priced(words, place, found)
        if step is None:
            place += 1
            continue
        role, value, end = step
        found[role] = value
        used |= set(range(place, end))
        place = end
    told = words[at].text in {"long", "short"}
    if not found or (not told and len(found) < len(_ORDER)) or ("entryPrice" not in found and len(found) < 2):
        return
    drawing, warning = _checked(kind, found)
    end = max(used) + 1
    holes = frozenset(range(at, end)) - used
    bonus = 1.0 if len(found) > 1 else 0.0
    yield Detection(at, end, ClauseFound((drawing,) if drawing else (), warning), bonus=bonus, holes=holes)


def _has_exit(words: Sequence[Word], at: int) -> bool:
    """Returns True if a stop or a target follows soon: `long 250 sl 240`."""
    return any(_ROLES.get(word.text, "entryPrice") != "entryPrice" for word in words[at : at + 4] if not word.is_number)


def _priced(words: Sequence[Word], at: int, found: dict[str, float]) -> tuple[str, float, int] | None:
    """Returns the role of a price, the price, and the index after it."""
    word = words[at]
    role = None if word.is_number else _ROLES.get(word.text)
    place = at
    if role is None and word.text == "take" and at + 1 < len(words) and words[at + 1].text == "profit":
        role, place = "targetPrice", at + 1
    if role is None or role in found:
        return None
    place += 1
    while place < len(words) and not words[place].is_number and words[place].text in _FILLERS:
        place += 1
    price = price_at(words, place)
    return None if price is None else (role, price[1], price[0])


def _checked(kind: str, found: dict[str, float]) -> tuple[dict[str, object] | None, str]:
    """Returns the drawing of three prices on their right sides, else why there is none."""
    missing = [_NAMES[name] for name in _ORDER if name not in found]
    if missing:
        return None, f"a position needs entry, stop and target; this one has no {' and no '.join(missing)}"
    entry, target, stop = (found[name] for name in _ORDER)
    sign = 1 if kind == "Long Position" else -1
    wrong = [name for name, gap in (("stop", entry - stop), ("target", target - entry)) if gap * sign <= 0]
    if wrong:
        return None, f"the {' and the '.join(wrong)} of the {kind.lower()} must be on the other side of its entry"
    return {"type": kind, "coordinates": {name: plain(found[name]) for name in _ORDER}}, ""
