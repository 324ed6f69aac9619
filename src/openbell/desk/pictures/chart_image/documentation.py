"""The vendor's documentation: its page, kept for a day; an older copy if the page fails; else what this package knows."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from openbell import __version__
from openbell.charts.studies.catalogue import all_studies
from openbell.desk.bars.single_flight import SingleFlight
from openbell.desk.pictures.chart_image.catalogue_documentation import (
    CATALOGUE,
    PARTS,
    is_documentation,
    merged_documentation,
)
from openbell.desk.pictures.chart_image.errors import VendorError, VendorFailed
from openbell.desk.pictures.chart_image.http import Timing, VendorHttp, VendorRequest
from openbell.desk.pictures.chart_image.page_facts import PageFacts, read_facts
from openbell.desk.pictures.chart_image.vendor import FOLDER, call_seconds
from openbell.desk.settings import Settings
from openbell.desk.settings.private_files import replace_file

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
            return _Copy(fetched_at, table["data"], sources) if 0 <= fetched_at < _LATEST else None
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
