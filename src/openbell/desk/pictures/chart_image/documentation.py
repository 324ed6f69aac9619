"""The vendor's documentation: its page, kept for a day; an older copy if the page fails; else what this package knows.

Its form is that of the contract, built from this package alone or from a page and this package.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from openbell import __version__
from openbell.charts.config.choices import INTERVALS, PLANS, PRESETS, SCALES, SESSIONS, STYLES, THEMES
from openbell.charts.config.model import KINDS, AnnotationKind
from openbell.charts.studies.catalogue import all_studies
from openbell.charts.studies.study import Input, Study
from openbell.desk.bars.single_flight import SingleFlight
from openbell.desk.pictures.chart_image.errors import VendorError, VendorFailed
from openbell.desk.pictures.chart_image.http import Timing, VendorHttp, VendorRequest
from openbell.desk.pictures.chart_image.page_facts import PageFacts, read_facts
from openbell.desk.pictures.chart_image.vendor import FOLDER, call_seconds
from openbell.desk.pictures.chart_image.words import clean
from openbell.desk.settings import Settings
from openbell.desk.settings.private_files import replace_file
from openbell.market.errors import InvalidParameter
from openbell.market.foreign_text import visible_json

log = logging.getLogger(__name__)
FRESH_SECONDS = 24 * 3600
_SHARE = 0.5
"""The part of a call's time that the page may take."""
_PAUSE = 60.0
"""Seconds after a failure in which the page is not fetched again, unless a caller insists."""
_LARGEST = 4 * 2**20
_LARGEST_FILE = 16 * 2**20
_LATEST = 2.0**33
"""A time that no file has: the year 2242."""


@dataclass(frozen=True, slots=True)
class Documentation:
    """The documentation. `data` is shared: callers must not change it."""

    data: Mapping[str, Any]
    """The contract's `data`."""
    cached_at: datetime
    """When the page was fetched; for the catalogue, when it was built."""
    sources: Mapping[str, str]
    """Where each part of `data` comes from: `page`, `catalogue`, or `page and catalogue`."""
    state: str
    """`fetched`, `cached`, `stale` (older than a day, because the page failed) or `catalogue`."""
    error: str | None = None
    """Why the page is not used, or not a new one."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A page that was read, and the machine's time at which it was fetched."""

    fetched_at: float
    data: dict[str, Any]
    sources: dict[str, str]


class DocumentationService:
    """Fetches, reads and caches the page. Ages are those of the machine's time, whatever the desk's clock shows."""

    def __init__(
        self,
        http: VendorHttp,
        folder: Path,
        *,
        limit: float = 20.0,
        read_only: bool = False,
        timing: Timing | None = None,
    ) -> None:
        """`limit` is seconds for the page. If `read_only`, the copy is kept in memory alone."""
        self._http = http
        self._file = folder / "documentation.json"
        self._limit = limit
        self._read_only = read_only
        self._timing = timing or Timing()
        self._copy: _Copy | None = None
        self._flights = SingleFlight()
        self._failure: tuple[float, str] | None = None
        """The monotonic time of the last failure, and its reason."""

    async def get(self, *, force: bool = False) -> Documentation:
        """Returns the documentation. `force` fetches the page even if the copy is fresh. Never fails."""
        if not force and (found := await self._cached()) is not None:
            log.info("documentation: cache hit")
            return found
        log.info("documentation: cache miss%s", " (forced)" if force else "")
        return await self._flights.run("page", lambda: self._refreshed(force=force))

    async def _cached(self) -> Documentation | None:
        if self._copy is None:
            self._copy = await asyncio.to_thread(self._load)
        return None if self._copy is None or not self._is_fresh(self._copy) else _shown(self._copy, "cached")

    def _is_fresh(self, copy: _Copy) -> bool:
        # A copy from the future was made before the machine's time was set back: its age is unknown.
        return 0 <= self._timing.wall() - copy.fetched_at < FRESH_SECONDS

    async def _refreshed(self, *, force: bool) -> Documentation:
        error = self._recent_failure() if not force else None
        if error is None:
            try:
                self._copy = await self._fetched()
            except VendorError as failure:
                error = failure.message
                self._failure = (self._timing.monotonic(), error)
                log.warning("documentation: %s", error)
            else:
                self._failure = None
                await asyncio.to_thread(self._save, self._copy)
                return _shown(self._copy, "fetched")
        if self._copy is None:
            self._copy = await asyncio.to_thread(self._load)
        if self._copy is not None:
            return _shown(self._copy, "cached" if self._is_fresh(self._copy) else "stale", error)
        now = datetime.fromtimestamp(int(self._timing.wall()), UTC)
        data, _ = merged_documentation(PageFacts())
        return Documentation(data, now, dict.fromkeys(PARTS, CATALOGUE), CATALOGUE, error)

    def _recent_failure(self) -> str | None:
        if self._failure is None or self._timing.monotonic() - self._failure[0] >= _PAUSE:
            return None
        return self._failure[1]

    async def _fetched(self) -> _Copy:
        """Returns the page. Raises `VendorError` if it is not the documentation."""
        path = "" if urlsplit(self._http.url).path else "/"
        response = await self._http.send(VendorRequest("GET", path, _LARGEST, "text/html"), self._limit)
        if response.status != 200:
            raise VendorFailed(f"{self._http.host} answered with HTTP {response.status}", status=response.status)
        if response.kind not in {"text/html", "application/xhtml+xml"}:
            raise VendorFailed(f"{self._http.host} did not send an HTML page")
        titles = frozenset(study.title for study in all_studies().values())
        facts = await asyncio.to_thread(read_facts, response.body.decode("utf-8", "replace"), titles)
        if not facts.useful:
            raise VendorFailed(f"the page of {self._http.host} has nothing of the documentation")
        data, sources = merged_documentation(facts)
        return _Copy(self._timing.wall(), data, sources)

    def _load(self) -> _Copy | None:
        """Returns the copy in the home; None if there is none, or one that is damaged or of another address or version."""
        try:
            if self._file.stat().st_size > _LARGEST_FILE:
                return None
            table = json.loads(self._file.read_bytes())
            if (table["url"], table["version"]) != (self._http.url, __version__) or not is_documentation(table["data"]):
                return None
            sources = {name: str(table["sources"][name]) for name in PARTS}
            fetched_at = float(table["fetchedAt"])
            data = visible_json(table["data"])  # it may have been stored as it came
            return _Copy(fetched_at, data, sources) if 0 <= fetched_at < _LATEST else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            log.warning("documentation: %s cannot be used (%s)", self._file, type(error).__name__)
            return None

    def _save(self, copy: _Copy) -> None:
        if self._read_only:
            return
        table = {
            "url": self._http.url,
            "version": __version__,
            "fetchedAt": copy.fetched_at,
            "sources": copy.sources,
            "data": copy.data,
        }
        try:
            replace_file(self._file, json.dumps(table).encode())
        except OSError as error:
            log.warning("documentation: cannot write %s: %s", self._file, error.strerror)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()


def _shown(copy: _Copy, state: str, error: str | None = None) -> Documentation:
    fetched = datetime.fromtimestamp(int(copy.fetched_at), UTC)
    return Documentation(copy.data, fetched, copy.sources, state, error)


def make_documentation(settings: Settings) -> DocumentationService:
    """Returns the documentation of the page that the settings name."""
    http = VendorHttp(settings.chart_img_docs_url, connect=settings.pool_chart_img_connect)
    # A page that stalls must leave time to return an older copy.
    limit = call_seconds(settings) * _SHARE
    return DocumentationService(http, settings.home / FOLDER, limit=limit, read_only=settings.read_only)


PARTS = ("indicators", "chartParameters", "rateLimits", "examples")
PAGE, CATALOGUE = "page", "catalogue"
_OTHER = "Other"
"""The category of studies that this package does not know."""
_EXAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "Bitcoin with Bollinger Bands and RSI over 7 days",
        {
            "symbol": "BINANCE:BTCUSDT",
            "interval": "1h",
            "range": "7D",
            "theme": "dark",
            "studies": [
                {"name": "BollingerBands@tv-basicstudies", "inputs": {"length": 20, "stdDev": 2}},
                {"name": "RSI@tv-basicstudies", "inputs": {"length": 14}},
            ],
        },
    ),
    (
        "Apple since the beginning of the year with two moving averages and volume",
        {
            "symbol": "NASDAQ:AAPL",
            "interval": "1D",
            "range": "YTD",
            "style": "candle",
            "studies": [
                {"name": "MA@tv-basicstudies", "inputs": {"length": 50}},
                {"name": "MA@tv-basicstudies", "inputs": {"length": 200}},
                {"name": "Volume@tv-basicstudies"},
            ],
        },
    ),
    (
        "Euro in US dollars between two days with MACD, as a line",
        {
            "symbol": "FX:EURUSD",
            "interval": "4h",
            "range": "2026-03-03/2026-03-17",
            "style": "line",
            "width": 800,
            "height": 600,
            "studies": [
                {"name": "MACD@tv-basicstudies", "inputs": {"fastLength": 12, "slowLength": 26, "signalLength": 9}}
            ],
        },
    ),
)


def catalogue_documentation() -> dict[str, Any]:
    """Returns the contract's `data` from this package alone."""
    return merged_documentation(PageFacts())[0]


def merged_documentation(facts: PageFacts) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the contract's `data` of a page, completed from this package, and where each part comes from.

    A source is `page`, `catalogue`, or `page and catalogue`.
    """
    indicators = [_indicator(study, facts.studies.get(study.title, {})) for study in all_studies().values()]
    known = {study.title for study in all_studies().values()}
    indicators += [_foreign(title, inputs) for title, inputs in facts.studies.items() if title not in known]
    parameters = {
        "intervals": INTERVALS,
        "ranges": PRESETS,
        "themes": THEMES,
        "styles": STYLES,
        "scales": SCALES,
        "sessions": SESSIONS,
        "drawings": [_drawing(kind) for kind in KINDS.values()],
    }
    limits = {
        plan.name: {
            "requestsPerSecond": plan.per_second,
            "dailyMax": plan.per_day,
            "maxResolution": plan.resolution,
            "maxStudies": plan.parameters,
            **facts.limits.get(plan.name, {}),
        }
        for plan in PLANS.values()
    }
    examples = [{"description": text, "config": config} for text, config in _EXAMPLES]
    data = {
        "indicators": indicators,
        "chartParameters": {name: list(facts.parameters.get(name, values)) for name, values in parameters.items()},
        "rateLimits": limits,
        "examples": [*({**each, "description": clean(each["description"], "")} for each in facts.examples), *examples],
    }
    sources = {
        "indicators": _source(len(facts.studies), len(known)),
        "chartParameters": _source(len(facts.parameters), len(parameters)),
        "rateLimits": _source(sum(map(len, facts.limits.values())), sum(map(len, limits.values()))),
        "examples": f"{PAGE} and {CATALOGUE}" if facts.examples else CATALOGUE,
    }
    return data, sources


def _drawing(kind: AnnotationKind) -> str:
    """Returns a kind of drawing with its coordinates: `Horizontal Line: price (text)`."""
    optional = f" ({', '.join(kind.optional)})" if kind.optional else ""
    return f"{kind.name}: {', '.join(kind.required)}{optional}"


def _source(found: int, wanted: int) -> str:
    if not found:
        return CATALOGUE
    return PAGE if found >= wanted else f"{PAGE} and {CATALOGUE}"


def _indicator(study: Study, defaults: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": study.name,
        "displayName": study.display_name,
        "category": str(study.category),
        "inputs": {each.name: _input(each, defaults.get(each.key)) for each in study.inputs},
    }


def _input(wanted: Input, default: object) -> dict[str, Any]:
    """Returns an input, with the default of the page if it is a valid one."""
    found: dict[str, Any] = {"type": wanted.kind, "default": wanted.default, "description": _description(wanted)}
    if wanted.kind == "number":
        found |= {"min": wanted.low, "max": wanted.high}
    if default is not None:
        with suppress(InvalidParameter):
            found["default"] = wanted.check(default)
    return found


def _description(wanted: Input) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", wanted.name).lower()
    if wanted.choices:
        return f"{wanted.description or words}: {', '.join(wanted.choices)}"
    return f"{words}, {wanted.description}" if wanted.description else words


def _foreign(title: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Returns a study that only the page has."""
    kinds = {bool: "boolean", str: "string"}
    described = {
        key: {"type": kinds.get(type(default), "number"), "default": default, "description": key}
        for key, default in inputs.items()
    }
    return {"name": title, "displayName": title, "category": _OTHER, "inputs": described}


def is_documentation(data: object) -> bool:
    """Returns True if a value has the form of the contract's `data`, such as one that was read from a file."""
    if not isinstance(data, dict) or set(data) != set(PARTS):
        return False
    indicators, parameters, limits, examples = (data[name] for name in PARTS)
    if not isinstance(indicators, list) or not isinstance(examples, list) or not indicators:
        return False
    if not isinstance(parameters, dict) or not isinstance(limits, dict):
        return False
    return (
        all(isinstance(each, dict) and _is_indicator(each) for each in indicators)
        and all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in parameters.values())
        and {"intervals", "ranges", "themes", "styles", "drawings"} <= set(parameters)
        and all(isinstance(each, dict) and {"dailyMax", "maxResolution"} <= set(each) for each in limits.values())
        and all(isinstance(each, dict) and set(each) == {"description", "config"} for each in examples)
    )


def _is_indicator(value: dict[str, Any]) -> bool:
    texts = (value.get(name) for name in ("name", "displayName", "category"))
    inputs = value.get("inputs")
    return (
        all(isinstance(each, str) for each in texts)
        and isinstance(inputs, dict)
        and all(isinstance(each, dict) and {"type", "default", "description"} <= set(each) for each in inputs.values())
    )
