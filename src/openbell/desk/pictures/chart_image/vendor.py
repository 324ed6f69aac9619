"""The client of the vendor's API: charts, and lists of exchanges and symbols.

A request is repeated at most three times after failures that pass, within the time limit of the call. Requests stay below
the rate and the daily quota of the plan, so that the vendor seldom has to refuse one.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import logging
import math
import os
import random
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from openbell.charts.config.choices import PLANS, Plan
from openbell.charts.config.model import ChartConfig
from openbell.charts.config.vendor_form import vendor_body
from openbell.desk.pictures.chart_image.answers import (
    Failure,
    PictureAnswer,
    StoredPictureAnswer,
    failure_of,
    picture_of,
    remaining_of,
    stored_of,
    until_midnight,
)
from openbell.desk.pictures.chart_image.directory_lists import Symbol, read_exchanges, read_symbols
from openbell.desk.pictures.chart_image.errors import (
    KEY_VARIABLE,
    KeyRefused,
    RateLimited,
    VendorFailed,
    VendorRefused,
    VendorUnreachable,
)
from openbell.desk.pictures.chart_image.exchanges import VendorExchange
from openbell.desk.pictures.chart_image.http import Timing, VendorHttp, VendorRequest, pace_of
from openbell.desk.pictures.chart_image.words import parse_json, words_of
from openbell.desk.settings import Settings
from openbell.desk.settings.private_files import replace_file
from openbell.net.rates import Bucket, backoff
from openbell.net.response import Response

log = logging.getLogger(__name__)
_LARGEST = 65_536
_LOCK_SECONDS = 2.0
"""How long to wait for another process, which holds the lock for a millisecond unless it is stopped."""


def fingerprint(key: str) -> str:
    """Returns a name of a key from which the key cannot be told."""
    return hashlib.sha256(f"openbell chart-img {key}".encode()).hexdigest()[:16]


class DayCount:
    """Counts requests. Every call may block for a moment."""

    def __init__(self, folder: Path, key: str, plan: Plan, *, read_only: bool = False) -> None:
        """If `read_only`, the requests of this process are counted in memory, on top of those in the file."""
        self._file = folder / "requests.json"
        self._lock = folder / "requests.lock"
        self._key = fingerprint(key)
        self._plan = plan
        self._read_only = read_only
        self._memory: tuple[str, int] = ("", 0)
        """The day, and the requests of this process that are not in the file."""
        self._guard = threading.Lock()

    def take(self, now: float) -> int:
        """Count a request at a time in epoch seconds, and return how many are left. Raises `RateLimited` if none is."""
        with self._guard:
            return self._change(1, now)

    def give_back(self, now: float) -> None:
        """Uncount a request that was never sent."""
        with self._guard:
            self._change(-1, now)

    def _change(self, step: int, now: float) -> int:
        day = datetime.fromtimestamp(now, UTC).date().isoformat()
        if self._memory[0] != day:
            self._memory = (day, 0)
        if not self._read_only:
            try:
                with self._locked():
                    counts = self._read(day)
                    used = self._checked(counts.get(self._key, 0) + self._memory[1], step, now)
                    text = json.dumps({"day": day, "counts": counts | {self._key: used}})
                    replace_file(self._file, text.encode())
                    self._memory = (day, 0)
                    return self._plan.per_day - used
            except OSError as error:
                log.warning("cannot count requests in %s: %s", self._file, error.strerror)
        stored = self._read(day).get(self._key, 0)
        used = self._checked(stored + self._memory[1], step, now)
        self._memory = (day, used - stored)
        return self._plan.per_day - used

    def _checked(self, used: int, step: int, now: float) -> int:
        plan = self._plan
        if step > 0 and used >= plan.per_day:
            reason = (
                f"The {plan.per_day} requests of a day with the plan {plan.name} are used (OPENBELL_CHART_IMG_PLAN)."
            )
            raise RateLimited(until_midnight(now), reason)
        return max(0, used + step)

    def _read(self, day: str) -> dict[str, int]:
        """Returns the counts of a day by key. A file that is damaged counts as missing."""
        try:
            with self._file.open("rb") as source:
                table = json.loads(source.read(_LARGEST))
            counts = table["counts"] if table["day"] == day else {}
            return {str(name): int(count) for name, count in counts.items() if 0 <= int(count) < 10**9}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            log.warning("%s cannot be read: counting begins again", self._file)
            return {}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds the lock file. Raises `OSError` if it cannot be had."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            give_up = time.monotonic() + _LOCK_SECONDS
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if time.monotonic() > give_up:
                    raise TimeoutError(None, "another process holds the lock")
                time.sleep(0.005)
            yield
        finally:
            os.close(fd)  # releases the lock


RETRIES = 3
FOLDER = "chart-image"
"""The folder in the home."""
_CHART = "/v2/tradingview/advanced-chart"
_EXCHANGES = ("/v3/tradingview/exchange/list", "/v3/tradingview/exchanges")
_SYMBOLS = ("/v3/tradingview/exchange/{}", "/v3/tradingview/exchange/{}/symbols")
"""The paths of lists. The second one is tried if the first one does not exist."""
_LARGEST_PICTURE = 32 * 2**20
_LARGEST_LIST = 16 * 2**20
_LARGEST_STORED = 2**16
_SHARE = 0.95
"""The part of a call's timeout that requests may take, so that their error arrives."""
_LEAST = 0.5
"""Seconds that are left for a request after it has waited for its turn."""
T = TypeVar("T")
_KEY = re.compile(r"[!-~]{1,500}")


class VendorClient:
    """A client with one key."""

    def __init__(
        self,
        http: VendorHttp,
        key: str,
        plan: Plan,
        count: DayCount,
        pace: Bucket,
        *,
        limit: float = 20.0,
        timing: Timing | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """`limit` is seconds of a call with all of its retries; `chance` spreads them."""
        self._http = http
        self._key = key
        self.plan = plan
        self._count = count
        self._pace = pace
        self._limit = limit
        self._timing = timing or Timing()
        self._chance = chance or random.Random()  # noqa: S311 - spreads retries, decides nothing

    async def draw(self, config: ChartConfig, now: datetime) -> PictureAnswer:
        """Returns the picture of a config at a time. Raises `VendorError`."""
        body = _body(config, now)
        response, left = await self._call(
            VendorRequest("POST", _CHART, _LARGEST_PICTURE, "image/*, application/json", body)
        )
        return picture_of(response, config.format, self._key, left)

    async def store(self, config: ChartConfig, now: datetime) -> StoredPictureAnswer:
        """Returns the address at which the vendor keeps the picture of a config. Raises `VendorError`."""
        response, left = await self._call(
            VendorRequest("POST", f"{_CHART}/storage", _LARGEST_STORED, body=_body(config, now))
        )
        until = datetime.fromtimestamp(self._timing.wall(), UTC) + timedelta(days=self.plan.storage_days)
        return stored_of(response, config.format, self._key, left, self._http.url, until)

    async def exchanges(self) -> tuple[VendorExchange, ...]:
        """Returns the vendor's exchanges. Raises `VendorError`."""
        items = await self._list(_EXCHANGES, "exchanges")
        return _readable(await asyncio.to_thread(read_exchanges, items, self._key), items)

    async def symbols(self, exchange: str) -> tuple[Symbol, ...]:
        """Returns the vendor's symbols of an exchange. Raises `VendorError`."""
        items = await self._list(tuple(path.format(quote(exchange, safe="")) for path in _SYMBOLS), "symbols")
        return _readable(await asyncio.to_thread(read_symbols, items, exchange, self._key), items)

    async def _list(self, paths: tuple[str, ...], name: str) -> list[Any]:
        *first, last = paths
        for path in first:
            try:
                return await self._listed(path, name)
            except VendorRefused as error:
                if error.status != 404:
                    raise
        return await self._listed(last, name)

    async def _listed(self, path: str, name: str) -> list[Any]:
        response, _ = await self._call(VendorRequest("GET", path, _LARGEST_LIST))
        value = await asyncio.to_thread(parse_json, response.body)
        fields = [value.get(each) for each in ("payload", name, "data")] if isinstance(value, dict) else [value]
        for each in fields:
            if isinstance(each, list):
                return each
        words = words_of(value, self._key)
        raise VendorFailed(f"the vendor sent no list of {name}{': ' + words if words else ''}", status=response.status)

    async def _call(self, request: VendorRequest) -> tuple[Response, int]:
        """Returns the successful response, and how many requests are left of the day. Raises `VendorError`."""
        if not _KEY.fullmatch(self._key):
            raise KeyRefused
        deadline = self._timing.monotonic() + self._limit
        for attempt in range(RETRIES + 1):
            outcome = await self._attempt(request, deadline)
            if not isinstance(outcome, Failure):
                return outcome
            error, wait = outcome
            log.info("%s %s, attempt %d: %s", request.method, request.path, attempt + 1, error)
            if wait is None:
                wait = backoff(attempt, self._chance.random())
            if attempt == RETRIES or not error.transient or self._timing.monotonic() + wait >= deadline:
                raise error
            await self._timing.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, request: VendorRequest, deadline: float) -> tuple[Response, int] | Failure:
        """Send a request once, when the plan allows it. Raises `RateLimited` if that is after the deadline."""
        timing = self._timing
        now = timing.monotonic()
        wait = self._pace.reserve(now, max(0.0, deadline - now - _LEAST))
        if wait is None:
            raise RateLimited(math.ceil(self._pace.wait(now)))
        left = await asyncio.to_thread(self._count.take, timing.wall())
        if wait:
            await timing.sleep(wait)
        begun = timing.monotonic()
        try:
            response = await self._http.send(request, deadline - begun)
        except VendorUnreachable as error:
            if not error.sent:
                await asyncio.to_thread(self._count.give_back, timing.wall())
            return Failure(error, None)
        log.info(
            "%s %s: HTTP %d, %d bytes in %.1f s, %d requests left",
            *(request.method, request.path, response.status, len(response.body), timing.monotonic() - begun, left),
        )
        failure = failure_of(response, self._key, timing.wall())
        said = remaining_of(response.headers)
        return failure or (response, left if said is None else said)

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()


def make_client(settings: Settings, environ: Mapping[str, str]) -> VendorClient | None:
    """Returns the client of the key in the environment; None if there is no key."""
    key = environ.get(KEY_VARIABLE, "").strip()
    if not key:
        return None
    plan = PLANS[settings.chart_img_plan.upper()]
    http = VendorHttp(settings.chart_img_url, {"x-api-key": key}, connect=settings.pool_chart_img_connect)
    count = DayCount(settings.home / FOLDER, key, plan, read_only=settings.read_only)
    return VendorClient(http, key, plan, count, pace_of(plan, fingerprint(key)), limit=call_seconds(settings))


def call_seconds(settings: Settings) -> float:
    """Returns the time limit of a call with all of its retries."""
    most, call = settings.pool_chart_img_timeout, settings.timeout * _SHARE
    return min(most, call) if call else most


def _readable(found: tuple[T, ...], items: list[Any]) -> tuple[T, ...]:
    """Returns what was read of a list. Raises `VendorFailed` if that is nothing of it."""
    if items and not found:
        raise VendorFailed("the vendor sent a list that cannot be read")
    return found


def _body(config: ChartConfig, now: datetime) -> bytes:
    return json.dumps(vendor_body(config, now), allow_nan=False).encode()
