"""quotes.live, quotes.historical, system.health and system.metadata.

A note beside the result says what prices are: the manifest allows no further field, and an agent does not read `_meta`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any

from openbell.desk.quotes.arche.errors import UpstreamTooLarge, UpstreamUnreachable
from openbell.desk.quotes.arche.requests import (
    API_VERSION,
    CONTRACT_VERSION,
    HEALTH,
    HISTORICAL,
    INTERVALS,
    LARGEST_PAGE,
    LIVE,
    MOST_DAYS,
    MOST_TICKERS,
    ArcheResponse,
    Params,
)
from openbell.market.errors import InvalidParameter
from openbell.market.plural import in_words
from openbell.market.timeframes import name_of, parse_timeframe
from openbell.protocol.call import Basis, Call, Result, on_bars
from openbell.protocol.tool import NoArguments, Reads, Tool
from openbell.servers.arche import answers, shapes
from openbell.servers.arche.shapes import Bar, QuoteShape

VERSION = "1.0.0"
"""Of the manifest."""
_KINDS = {
    "simulated": "Prices are SIMULATED, not real",
    "imported": "Prices were imported on this machine, not live",
    "replay": "Prices are a replay of stored bars, not live",
    "remote": "Prices are those of another service",
}
"""What prices are, by the `data` of the truth header."""
_LONGEST_TICKER = 64


async def quotes_live(call: Call, given: shapes.LiveInput) -> Result[shapes.LiveQuotesShape]:
    """Return the newest prices; tickers without one are left out, with status 206."""
    tickers = _joined(given.tickers)
    response = await _ask(call, LIVE, [("tickers", tickers)])
    quotes = answers.quotes_of(response, call.desk.settings.arche_key)
    value: shapes.LiveQuotesShape = {
        "quotes": quotes,
        "request_id": response.headers["x-request-id"],
        "source_status": response.status,
    }
    if call.desk.settings.arche_url:
        left_out = unanswered(tickers.split(","), (each["ticker"] for each in quotes))
        return Result(value, Basis(newest=oldest(quotes), note=left_out))
    return Result(value, basis_of(response))


async def quotes_historical(call: Call, given: shapes.HistoricalInput) -> Result[shapes.HistoricalPage]:
    """Return a page of closed bars, oldest first."""
    timeframe = parse_timeframe(given.interval, INTERVALS)
    interval = name_of(timeframe, INTERVALS)
    params = [
        ("tickers", _joined(given.tickers)),
        ("from", given.first),
        ("to", given.to),
        ("interval", interval),
        ("page", str(given.page)),
        ("page_size", str(given.page_size)),
    ]
    response = await _ask(call, HISTORICAL, params)
    found = answers.asked_page(response, given.page, given.page_size, interval, call.desk.settings.arche_key)
    value: shapes.HistoricalPage = {
        **found,
        "request_id": response.headers["x-request-id"],
        "source_status": response.status,
    }
    if call.desk.settings.arche_url:  # a page need not have bars of every ticker
        left_out = "some tickers have no answer" if response.status == HTTPStatus.PARTIAL_CONTENT else None
        return Result(value, Basis(newest=newest(found["items"], timeframe.seconds), note=left_out))
    return Result(value, basis_of(response))


async def system_health(call: Call, _given: NoArguments) -> Result[shapes.HealthShape]:
    """Return whether the API works; an API that cannot be reached is `down`, which is no error."""
    request_id = new_request_id()
    try:
        response = await call.desk.arche.get(HEALTH, [], request_id)
    except (UpstreamUnreachable, UpstreamTooLarge):
        return Result({"status": "down", "request_id": request_id})
    status = answers.health_of(response, call.desk.settings.arche_key)
    value: shapes.HealthShape = {
        "status": status,  # type: ignore[typeddict-item] # one of the three words
        "request_id": response.headers["x-request-id"],
        "source_status": response.status,
    }
    return Result(value, basis_of(response))


async def system_metadata(_call: Call, _given: NoArguments) -> Result[shapes.Metadata]:
    """Return versions and limits."""
    return Result(
        {
            "mcp_version": VERSION,
            "api_version": API_VERSION,
            "quotes_contract_version": CONTRACT_VERSION,
            "supported_intervals": list(INTERVALS),
            "max_page_size": LARGEST_PAGE,
            "max_range_days": MOST_DAYS,
            "max_tickers_per_request": MOST_TICKERS,
        }
    )


def new_request_id() -> str:
    """Returns an id by which a call is found in the logs of the API."""
    return secrets.token_hex(12)


async def _ask(call: Call, path: str, params: Params) -> ArcheResponse:
    request_id = new_request_id()
    try:
        return await call.desk.arche.get(path, params, request_id)
    except (UpstreamUnreachable, UpstreamTooLarge) as error:
        raise answers.transport_failure(error, request_id, call.desk.settings.arche_key) from None


def _joined(tickers: Sequence[str]) -> str:
    """Returns tickers as a list with commas. Raises `InvalidParameter` if a ticker has a comma itself."""
    for each in tickers:
        if "," in each or not each.strip():
            raise InvalidParameter("tickers: each must be one ticker, such as AAPL or BTC/USD, without a comma")
    # The upper case of other letters can be a letter of ASCII: such a text is a mistake, and not another ticker.
    return ",".join(each.strip().upper() if each.isascii() else each.strip() for each in tickers)


def basis_of(response: ArcheResponse) -> Basis:
    """Returns the data that a response is based on."""
    if response.facts is None:
        return Basis(stated=response.truth)
    facts = response.facts
    if facts.instrument is None:
        return Basis(
            newest=facts.newest, note=facts.bars.failure, made_of=facts.bars.made_of, sources=facts.bars.sources
        )
    return on_bars(facts.instrument, facts.newest, facts.bars)


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


TOOLS = (
    Tool(
        name="quotes.live",
        description="Fetch latest quotes (snapshots) for up to 50 tickers.",
        arguments=shapes.LiveInput,
        returns=shapes.LiveQuotesShape,
        handler=quotes_live,
        toolset="market",
        reads=Reads.BARS,
        note_of=live_note,
    ),
    Tool(
        name="quotes.historical",
        description="Fetch historical OHLCV bars for tickers over a time window.",
        arguments=shapes.HistoricalInput,
        returns=shapes.HistoricalPage,
        handler=quotes_historical,
        toolset="market",
        reads=Reads.BARS,
        note_of=history_note,
    ),
    Tool(
        name="system.health",
        description="Simple health indicator for the Arche API via MCP.",
        arguments=NoArguments,
        returns=shapes.HealthShape,
        handler=system_health,
        toolset="market",
        reads=Reads.NOTHING,
    ),
    Tool(
        name="system.metadata",
        description="Static metadata about Arche MCP capabilities and usage limits.",
        arguments=NoArguments,
        returns=shapes.Metadata,
        handler=system_metadata,
        toolset="market",
        reads=Reads.NOTHING,
    ),
)
