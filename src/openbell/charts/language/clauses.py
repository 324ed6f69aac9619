"""Recognises lines, shapes and positions: "line at 65k", "trend line from 50k on 1 March to 60k on 1 April", "long from
60k".

A position has its prices in any order: "long from 60k stop 58k target 66k". Prices are written as 65k, $65,000, 1.2 million
or 0.00012.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from openbell.charts.language.dates import days_at
from openbell.charts.language.spans import Detection
from openbell.charts.language.study_words import panel_names
from openbell.charts.language.words import Word

_AT = frozenset("at @ near around on of = : price level the is a zone area by between".split())
_LINES = frozenset({"line", "lines", "hline", "level", "levels"})
_LABELS = {
    **dict.fromkeys(("support", "supports"), "Support"),
    **dict.fromkeys(("resistance", "resistances"), "Resistance"),
    **dict.fromkeys(("target", "targets"), "Target"),
    **dict.fromkeys(("stop", "stops"), "Stop"),
    "entry": "Entry",
}
_JOINS = frozenset({"and", ",", "&", "plus"})
_STUDY_LEVELS = frozenset({"overbought", "oversold"})
_LABELLED = re.compile(r"\s*,?\s*(?:and\s+)?label(?:l)?ed\s*[\"“”'‘’]([^\"“”'‘’]{1,100})[\"“”'‘’]", re.IGNORECASE)
_SHAPES = {
    "fib": "Fib Retracement",
    "fibs": "Fib Retracement",
    "fibonacci": "Fib Retracement",
    "trendline": "Trend Line",
    "trendlines": "Trend Line",
    "rectangle": "Rectangle",
}
_SHAPE_WORDS = frozenset({"retracement", "retracements", "levels", "level", "line", "lines"})
_FARTHEST = 8
"""Words between a shape and the `from` of its corners."""
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
_FARTHEST_WORD = 30
"""Words after `long` that may belong to the position."""
_MULTIPLES = {"k": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9}
_WORDS = {"k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9, "grand": 1e3}
_UNITS = frozenset(
    "minute minutes min mins hour hours hr day days week weeks month months year years x × pixels px percent % below above "
    "points point pips pip ticks tick".split()
)


def clauses_in(sentence: str, words: Sequence[Word], today: date) -> Iterator[Detection[ClauseFound]]:
    """Yields annotations other than positions."""
    for at, word in enumerate(words):
        if word.is_number:
            continue
        yield from _levels(sentence, words, at)
        if word.text == "vertical":
            yield from _vertical(words, at, today)
        if word.text == "arrow":
            yield from _arrow(words, at, today)
        if (shape := _shape_at(words, at)) is not None:
            yield _shape(words, at, *shape, today)


def _levels(sentence: str, words: Sequence[Word], at: int) -> Iterator[Detection[ClauseFound]]:
    """Yields `line at 65k`, `horizontal lines at 60k and 65k`, `support at 58k`, `mark 70k`, `order line at 300`."""
    opened = _opened(words, at)
    if opened is None:
        return
    kind, label, place, needs_at = opened
    first = place
    while (
        place < len(words) and not words[place].is_number and (words[place].text in _AT or words[place].text in _LINES)
    ):
        place += 1
    prices, end = _prices(words, place, zone=bool(label))
    if not prices or (needs_at and place == first):
        return
    if _is_of_study(words, at):
        warning = "a line in the panel of a study is not drawn: sentences draw lines at prices only"
        yield Detection(at, end, ClauseFound((), warning), bonus=0.5)
        return
    if at and words[at - 1].text in _STUDY_LEVELS:
        warning = f"{words[at - 1].text} levels of studies cannot be set in a sentence"
        yield Detection(at - 1, end, ClauseFound((), warning), bonus=0.5)
        return
    if (given := _label(sentence, words, end)) is not None:
        label, end = given
    if doubt := doubts(sentence, words, place, end):
        yield Detection(at, end, ClauseFound((), f"nothing is drawn: {doubt}"), rank=1, bonus=0.2)
        return
    drawings = tuple(_line(kind, price, label) for price in prices)
    yield Detection(at, end, ClauseFound(drawings), rank=1, bonus=0.2)


def _is_of_study(words: Sequence[Word], at: int) -> bool:
    """Returns True if a line follows the name of a study with a scale of its own: `RSI with a line at 70`."""
    place = at - 1
    while place >= 0 and not words[place].is_number and words[place].text in {"with", "a", "and", "the"}:
        place -= 1
    if place == at - 1 or place < 0 or any(word.text == "and" for word in words[place + 1 : at]):
        return False
    return words[place].text in panel_names()


def _opened(words: Sequence[Word], at: int) -> tuple[str, str, int, bool] | None:
    """Returns the kind, the label and the index after the words that open a line, and whether `at` must follow."""
    text, following = words[at].text, words[at + 1].text if at + 1 < len(words) else ""
    if text == "order" and following in _LINES:
        return "Order Line", "", at + 2, True
    if text == "horizontal":
        return "Horizontal Line", "", at + 1, False
    if text in {"take", "stop"} and following in {"profit", "loss"}:
        return "Horizontal Line", "Target" if text == "take" else "Stop", at + 2, False
    if text in _LABELS:
        return "Horizontal Line", _LABELS[text], at + 1, False
    if text in _LINES:
        return "Horizontal Line", "", at + 1, True
    return ("Horizontal Line", "", at + 1, False) if text in {"mark", "marking"} else None


def _prices(words: Sequence[Word], at: int, *, zone: bool) -> tuple[list[float], int]:
    """Returns the prices of a list, and the index after them. A `zone` has two ends: `240-245`, `270 to 275`."""
    joins = _JOINS | {"-", "to"} if zone else _JOINS | {"-"}
    found: list[float] = []
    end = at
    while (one := price_at(words, at)) is not None:
        end, price = one
        found.append(price)
        at = end
        while at < len(words) and words[at].text in joins and not words[at].is_number:
            at += 1
        if at == end:
            break
    return found, end


def _label(sentence: str, words: Sequence[Word], end: int) -> tuple[str, int] | None:
    """Returns the text of `labelled "…"` after a line, and the index after it."""
    match = _LABELLED.match(sentence, words[end - 1].end)
    if match is None:
        return None
    return match[1], next((at for at in range(end, len(words)) if words[at].start >= match.end()), len(words))


def _line(kind: str, price: float, label: str) -> dict[str, object]:
    place: dict[str, object] = {"price": plain(price)}
    return {"type": kind, "coordinates": {**place, "text": label} if label else place}


def _vertical(words: Sequence[Word], at: int, today: date) -> Iterator[Detection[ClauseFound]]:
    """Yields `vertical line on 3 March`, `vertical lines on 1 May and 1 August`."""
    place = at + 1
    while place < len(words) and words[place].text in {"line", "lines", "on", "at", "the", "marking", "mark", "for"}:
        place += 1
    drawings: list[dict[str, object]] = []
    end = place
    while place < len(words) and (found := days_at(words, place, today)) is not None:
        end, days = found
        drawings.append({"type": "Vertical Line", "coordinates": {"datetime": _moment(days.first)}})
        place = end
        while place < len(words) and words[place].text in _JOINS | {"on", "the"} and not words[place].is_number:
            place += 1
    if drawings:
        yield Detection(at, end, ClauseFound(tuple(drawings)), bonus=1.0)
    elif at + 1 < len(words) and words[at + 1].text in {"line", "lines"}:
        yield Detection(at, at + 2, ClauseFound((), "a vertical line needs a time, such as on 3 March"))


def _arrow(words: Sequence[Word], at: int, today: date) -> Iterator[Detection[ClauseFound]]:
    """Yields `arrow up at 250 on 3 November`; without a day a warning."""
    place = at + 1
    direction = "Up"
    if place < len(words) and words[place].text in {"up", "down"}:
        direction = words[place].text.title()
        place += 1
    if place < len(words) and words[place].text in {"at", "@"}:
        place += 1
    price = price_at(words, place)
    if price is None:
        return
    end, value = price
    place = end + 1 if end < len(words) and words[end].text in {"on", "at"} else end
    days = days_at(words, place, today) if place < len(words) else None
    if days is None:
        yield Detection(at, end, ClauseFound((), "an arrow needs a time, such as arrow up at 250 on 3 March"))
        return
    coordinates = {"datetime": _moment(days[1].first), "price": plain(value)}
    yield Detection(
        at, days[0], ClauseFound(({"type": f"Arrow Mark {direction}", "coordinates": coordinates},)), bonus=1.0
    )


def _moment(day: date) -> str:
    return f"{day}T00:00:00Z"


def _shape_at(words: Sequence[Word], at: int) -> tuple[str, int] | None:
    """Returns the kind of a shape that begins at a word, and the index after its name."""
    text, following = words[at].text, words[at + 1].text if at + 1 < len(words) else ""
    kind = _SHAPES.get(text)
    if text == "trend" and following in {"line", "lines"}:
        kind = "Trend Line"
    if kind is None:
        return None
    after = at + 1
    while after < len(words) and words[after].text in _SHAPE_WORDS and not words[after].is_number:
        after += 1
    return kind, after


def _shape(words: Sequence[Word], at: int, kind: str, after: int, today: date) -> Detection[ClauseFound]:
    """Returns a shape with the corners of `from PRICE on DAY to PRICE on DAY`; without days a warning."""
    for place in range(after, min(len(words), after + _FARTHEST)):
        if words[place].text in {"from", "between"} and (corners := _corners(words, place + 1, today)) is not None:
            end, coordinates = corners
            holes = frozenset(range(after, place))
            drawing: dict[str, object] = {"type": kind, "coordinates": coordinates}
            return Detection(at, end, ClauseFound((drawing,)), bonus=1.0, holes=holes)
    end = after
    if end < len(words) and words[end].text in {"from", "between"}:
        prices = price_at(words, end + 1)
        while prices is not None:
            end = prices[0]
            prices = price_at(words, end + 1) if end < len(words) and words[end].text in {"to", "and", "-"} else None
    warning = f"{kind}: give the time and the price of both ends, such as from 50k on 1 March to 60k on 1 April"
    return Detection(at, end, ClauseFound((), warning))


def _corners(words: Sequence[Word], at: int, today: date) -> tuple[int, dict[str, object]] | None:
    found: dict[str, object] = {}
    for name in ("start", "end"):
        price = price_at(words, at)
        if price is None:
            return None
        at, value = price
        if at < len(words) and words[at].text in {"on", "at", "in"}:
            at += 1
        days = days_at(words, at, today) if at < len(words) else None
        if days is None:
            return None
        at, day = days
        found |= {f"{name}Datetime": _moment(day.first), f"{name}Price": plain(value)}
        if name == "start":
            if at >= len(words) or words[at].text not in {"to", "and", "until", "-"}:
                return None
            at += 1
    return at, found


@dataclass(frozen=True, slots=True)
class ClauseFound:
    """One or several annotations of a config, or why there is none."""

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
    while place < min(len(words), at + _FARTHEST_WORD) and len(found) < len(_ORDER):
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
    """Returns the annotation of three prices on their right sides, else why there is none."""
    missing = [_NAMES[name] for name in _ORDER if name not in found]
    if missing:
        return None, f"a position needs entry, stop and target; this one has no {' and no '.join(missing)}"
    entry, target, stop = (found[name] for name in _ORDER)
    sign = 1 if kind == "Long Position" else -1
    wrong = [name for name, gap in (("stop", entry - stop), ("target", target - entry)) if gap * sign <= 0]
    if wrong:
        return None, f"the {' and the '.join(wrong)} of the {kind.lower()} must be on the other side of its entry"
    return {"type": kind, "coordinates": {name: plain(found[name]) for name in _ORDER}}, ""


def price_at(words: Sequence[Word], at: int) -> tuple[int, float] | None:
    """Returns the index after a price, and the price. Numbers with a unit of time or size are no prices."""
    if at < len(words) and words[at].text in {"$", "€", "£"} and not words[at].is_number:
        at += 1
    if at >= len(words) or (words[at].value or 0.0) <= 0:
        return None
    word, value = words[at], words[at].value or 0.0
    if word.text:
        return (at + 1, _exact(value, _MULTIPLES[word.text])) if word.text in _MULTIPLES else None
    following = words[at + 1].text if at + 1 < len(words) and not words[at + 1].is_number else ""
    if following in _WORDS:
        return at + 2, _exact(value, _WORDS[following])
    return None if following in _UNITS and not word.money else (at + 1, value)


def _exact(value: float, multiple: float) -> float:
    """Returns the product without the dust of binary fractions: 1.1k is 1100."""
    return float(f"{value * multiple:.12g}")


def plain(value: float) -> float:
    """Returns a whole number as an int, so that configs have 65000 instead of 65000.0."""
    return int(value) if value == int(value) else value


def doubts(sentence: str, words: Sequence[Word], start: int, end: int) -> str:
    """Returns a warning if prices are written in a way that other countries read otherwise: 65.000, 250,50."""
    for at in range(start, end):
        word = words[at]
        text = sentence[word.start : word.end]
        if word.value is not None and text.endswith(".000") and word.value < 1000:
            return f"{text!r} was read as {word.value:g}: write {word.value * 1000:g} if you mean thousands"
        following = words[at + 1] if at + 1 < len(words) else None
        if word.is_number and following is not None and following.is_number and not following.money:
            return f"{text!r} and {sentence[following.start : following.end]!r} stand side by side: write one number"
        after = sentence[word.end : word.end + 2]
        if word.is_plain and len(after) == 2 and after[0] == "," and after[1].isdigit():
            return f"the comma after {text!r} was read as the end of a number: write decimals with a point"
    return ""
