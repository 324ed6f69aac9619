"""The second text block of a result: the manifest allows no further field in it, and an agent does not read `_meta`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from openbell.market.plural import in_words
from openbell.servers.arche.shapes import Bar, QuoteShape

_KINDS = {
    "simulated": "Prices are SIMULATED, not real",
    "imported": "Prices were imported on this machine, not live",
    "replay": "Prices are a replay of stored bars, not live",
    "remote": "Prices are those of another service",
}
"""What prices are, by the `data` of the truth header."""
_LONGEST_TICKER = 64


def live_note(truth: Mapping[str, Any]) -> str:
    """Returns what an agent must know about live quotes: what prices are, how old, and tickers without an answer."""
    return _note(truth, "the oldest is {} old")


def history_note(truth: Mapping[str, Any]) -> str:
    """Returns what an agent must know about a page of bars."""
    return _note(truth, "the newest bar here closed {} ago")


def _note(truth: Mapping[str, Any], aged: str) -> str:
    kind, age = str(truth["data"]), truth["age_s"]
    text = _KINDS.get(kind) or f"Prices are {kind.replace('+', ' and ')} data of {truth['feed']}"
    if age is not None:
        text += "; " + aged.format(f"{age} s" if age < 60 else in_words(age))
    return f"{text}. {note[:1].upper()}{note[1:]}." if (note := truth.get("note")) else f"{text}."


def unanswered(asked: Sequence[str], answered: Iterable[str]) -> str | None:
    """Returns which tickers another API has left out, in their canonical form or as they were asked; None if none."""
    found = {_letters(each) for each in answered}
    missing = [each for each in dict.fromkeys(asked) if _letters(each) not in found]
    if not missing:
        return None
    return f"not answered: {', '.join(repr(each[:_LONGEST_TICKER])[1:-1] for each in missing)}"


def _letters(ticker: str) -> str:
    """Returns what is the same in all forms of a ticker: BTC-USD, BTC/USD and BTCUSD."""
    return "".join(each for each in ticker.rpartition(":")[2].upper() if each.isalnum())


def oldest(quotes: Iterable[QuoteShape]) -> int | None:
    """Returns the time of the oldest quote."""
    return min((_seconds(each["as_of"]) for each in quotes), default=None)


def newest(bars: Iterable[Bar], length: int) -> int | None:
    """Returns the end of the newest bar; `length` is that of a bar in seconds."""
    return max((_seconds(each["timestamp"]) + length for each in bars), default=None)


def _seconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp())
