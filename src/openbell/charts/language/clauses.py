"""Recognises lines and shapes: "line at 65k", "support at 58,000", "trend line from 50k on 1 March to 60k on 1 April"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from openbell.charts.language.dates import days_at
from openbell.charts.language.positions import ClauseFound
from openbell.charts.language.prices import doubts, plain, price_at
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


def clauses_in(sentence: str, words: Sequence[Word], today: date) -> Iterator[Detection[ClauseFound]]:
    """Yields drawings other than positions."""
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
