"""fetch_chart_documentation, get_exchanges and get_symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from openbell.desk.pictures.chart_image.errors import VendorError
from openbell.market.clock import iso
from openbell.market.nearest import check_one_of
from openbell.protocol.call import Call, Result
from openbell.protocol.result_fields import mark, shaped
from openbell.protocol.tool import NoArguments, Reads, Tool
from openbell.servers.chart_image import shapes

if TYPE_CHECKING:
    from openbell.desk.pictures.chart_image.directory import SymbolListing

_SOURCES = {"fetched": "vendor", "cached": "cache", "stale": "cache", "catalogue": "package"}
_PARTS = {
    "indicators": ("indicators",),
    "parameters": ("chartParameters", "rateLimits"),
    "exchanges": (),
    "all": ("indicators", "chartParameters", "rateLimits", "examples"),
}


_COMMON = ("BollingerBands", "RSI", "MACD", "MA", "MAExp", "Volume", "VWAP", "Stochastic", "ATR", "ADX")
"""The studies that come first in the short form: the contract's own, then those that are asked for most."""
_STUDIES = {"all": 3, "indicators": 10}
"""Studies of a section in the short form."""
_EXCHANGES = 40


async def fetch_chart_documentation(call: Call, given: shapes.DocumentationInput) -> Result[shapes.DocumentationShape]:
    """Return the vendor's documentation, a copy of it, or the package's catalogue."""
    check_one_of("section", given.section, shapes.SECTIONS)
    images = call.desk.chart_images
    found = await images.documentation.get(force=given.forceRefresh)
    data: dict[str, Any] = {name: found.data[name] for name in _PARTS[given.section]}
    origins = [] if found.state == "catalogue" else [_host(call.desk.settings.chart_img_docs_url)]
    if given.section == "exchanges":
        listing = await images.directory.exchanges()
        data["exchanges"] = [shaped(shapes.ExchangeShape, each) for each in listing.items]
        origins += [] if listing.source == "desk" else [_host(call.desk.settings.chart_img_url)]
    left_out = {} if given.full else _shorten(data, given.section)
    value: shapes.DocumentationShape = {
        "success": True,
        "data": cast("shapes.DataShape", data),
        "cachedAt": iso(int(found.cached_at.timestamp())),
        "source": _SOURCES[found.state],
    }
    if left_out:
        value["leftOut"] = cast("shapes.LeftOut", left_out)
    if found.error:
        value["note"] = found.error
    if origins:
        mark(value, " and ".join(dict.fromkeys(origins)))
    return Result(value)


def _shorten(data: dict[str, Any], section: str) -> dict[str, Any]:
    """Cuts the long lists of a section, and returns how many of each are left out, and the names of the studies."""
    left_out: dict[str, Any] = {}
    if "indicators" in data:
        ranks = {name: place for place, name in enumerate(_COMMON)}
        ranked = sorted(data["indicators"], key=lambda each: ranks.get(_short_name(each), len(ranks)))
        shown, others = ranked[: _STUDIES[section]], ranked[_STUDIES[section] :]
        data["indicators"] = shown
        if others:
            left_out |= {"indicators": len(others), "indicatorNames": ", ".join(map(_short_name, others))}
    if "exchanges" in data and len(data["exchanges"]) > _EXCHANGES:
        left_out["exchanges"] = len(data["exchanges"]) - _EXCHANGES
        data["exchanges"] = data["exchanges"][:_EXCHANGES]
    return left_out


def _short_name(indicator: dict[str, Any]) -> str:
    return str(indicator["name"]).partition("@")[0]


async def get_exchanges(call: Call, _given: NoArguments) -> Result[shapes.ExchangesShape]:
    """Return all exchanges, sorted by type, then name."""
    found = await call.desk.chart_images.directory.exchanges()
    value = shaped(shapes.ExchangesShape, found, success=True, count=len(found.items), note=_note(found))
    if found.source != "desk":
        mark(value, _host(call.desk.settings.chart_img_url))
    return Result(value)


async def get_symbols(call: Call, given: shapes.SymbolsInput) -> Result[shapes.SymbolsShape]:
    """Return the symbols of an exchange."""
    found = await call.desk.chart_images.directory.symbols(given.exchange, given.search or "", given.limit)
    count = len(found.listing.items)
    value = shaped(
        shapes.SymbolsShape,
        found,
        success=True,
        count=count,
        has_more=found.total > count,
        note=_note(found.listing),
    )
    if found.listing.source != "desk":
        mark(value, _host(call.desk.settings.chart_img_url))
    return Result(value)


def _host(url: str) -> str:
    """Returns whose texts a result has."""
    return urlsplit(url).netloc


def _note(found: SymbolListing[Any]) -> str | None:
    """Returns what a reader of the list must know about its origin."""
    if found.source == "desk":
        return "the instruments that this desk knows; CHART_IMG_API_KEY gives the vendor's list"
    return f"{found.error}; the list is {found.age:.0f} s old" if found.error else None


TOOLS = (
    Tool(
        "fetch_chart_documentation",
        "Studies with their inputs, intervals, ranges, styles, plan limits and examples of chart configs. Long lists are "
        "cut: leftOut counts and names the rest, full returns all (about 8,000 tokens).",
        shapes.DocumentationInput,
        shapes.DocumentationShape,
        fetch_chart_documentation,
        toolset="charts",
        reads=Reads.NOTHING,
        open_world=True,
        errors=(VendorError,),
    ),
    Tool(
        "get_exchanges",
        "The exchanges whose symbols can be drawn.",
        NoArguments,
        shapes.ExchangesShape,
        get_exchanges,
        toolset="charts",
        reads=Reads.NOTHING,
        open_world=True,
        errors=(VendorError,),
    ),
    Tool(
        "get_symbols",
        "The symbols of an exchange.",
        shapes.SymbolsInput,
        shapes.SymbolsShape,
        get_symbols,
        toolset="charts",
        reads=Reads.NOTHING,
        open_world=True,
        errors=(VendorError,),
    ),
)
