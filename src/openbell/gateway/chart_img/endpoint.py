"""The ASGI application of the chart API. The checks come in this order: path, method, key, slot, scope, limits."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from math import ceil
from time import perf_counter
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from openbell.charts.config.choices import Plan
from openbell.charts.config.validation import plan_of
from openbell.desk.desk import Desk
from openbell.desk.pictures.chart_image.pictures import PATH, expiry_of
from openbell.gateway.admission import Admission, with_token
from openbell.gateway.calls import Calls, CallWatch, HttpCall
from openbell.gateway.chart_img.charts import ChartResponse, Charts, failed, failure, refusal_body
from openbell.gateway.guard.limits import CallLimits
from openbell.gateway.guard.refusals import GuardRefusal
from openbell.market.errors import CallTimeout, OpenbellError
from openbell.net.rates import Rate
from openbell.protocol.session import Scope as Permission

log = logging.getLogger(__name__)
CHART = "/v2/tradingview/advanced-chart"
STORAGE = f"{CHART}/storage"
_EXCHANGES = frozenset({"/v3/tradingview/exchange/list", "/v3/tradingview/exchanges"})
_SYMBOLS = re.compile(r"/v3/tradingview/exchange/([A-Za-z0-9_]{1,40})(?:/symbols)?")
TOOLS = ("draw", "store", "exchanges", "symbols")
"""What a request is called in metrics and in the audit log, whose server is `chart-img`."""
CALLS = {
    name: HttpCall(name, str(Permission.READ), frozenset({Permission.READ}), "the chart API") for name in TOOLS
} | {"store": HttpCall("store", str(Permission.WRITE), frozenset({Permission.WRITE}), "a stored picture", changes=True)}
Work = Callable[[str], Awaitable[ChartResponse]]
"""Answers a request of a principal."""
_NO_ROUTE = failure(404, "Route Not Found")
_NO_PICTURE = failure(404, "Not Found")
_DAY = 86400
_LATE = "Timeout: the chart took too long"
_LIMIT_KIND = "chart"
_MOST_PRINCIPALS = 10_000
"""Principals that are counted. Further ones share a count."""


class ChartEndpoint:
    """Answers requests of the chart API, and those for stored pictures."""

    def __init__(self, desk: Desk, admission: Admission, watch: CallWatch, base: str) -> None:
        """`base` is the gateway's own URL."""
        self._desk = desk
        self._calls = Calls("chart-img", base + CHART, admission, watch)
        plan = plan_of(desk.settings.chart_api_plan)
        self._limits = PlanLimits(plan)
        self._charts = Charts(desk, plan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        found = self._route(scope, receive)
        if found is None:
            await _NO_ROUTE.send(send, [])
            return
        call, work = found
        if (refusal := _key_in_address(scope)) is not None:
            await self._calls.refuse(refusal).send(send, refusal_body(scope, refusal))
            return
        request, began = with_token(scope), perf_counter()
        entered = await self._calls.enter(request, call)
        if isinstance(entered, GuardRefusal):
            refusal = _as_vendor(request, entered)
            await refusal.send(send, refusal_body(scope, refusal))
            return
        principal, claim = entered
        with claim:
            refusal = self._calls.refusal(request, principal, call, lambda: self._limits.take(principal.subject), began)
            if refusal is not None:
                refusal = _as_vendor(request, refusal)
                await refusal.send(send, refusal_body(scope, refusal))
                return
            with self._calls.recorded(scope, principal, call, began) as outcome:
                answer = await self._in_time(work(principal.subject))
                outcome.text = "ok" if answer.status < 400 else "error"
            left = self._limits.remaining(principal.subject)
            await answer.send(send, [(b"x-ratelimit-remaining", b"%d" % left)])

    def _route(self, scope: Scope, receive: Receive) -> tuple[HttpCall, Work] | None:
        """Returns what a request calls and its work; None if there is no such route."""
        path, method = scope["path"], scope["method"]
        if method == "POST" and path in {CHART, STORAGE}:

            async def draw(principal: str) -> ChartResponse:
                body = await _body(receive)
                if body is None:
                    return failure(400, "Bad Request: the body ended early")
                return await self._charts.draw(body, principal, store=path == STORAGE)

            return CALLS["store" if path == STORAGE else "draw"], draw
        if method == "GET" and path in _EXCHANGES:
            return CALLS["exchanges"], lambda _: self._charts.exchanges()
        if method == "GET" and (found := _SYMBOLS.fullmatch(path)) is not None:

            async def symbols(_principal: str) -> ChartResponse:
                try:
                    query = _query(scope)
                except ValueError:
                    return failure(400, "Bad Request: the query has too many fields")
                return await self._charts.symbols(found[1], query)

            return CALLS["symbols"], symbols
        return None

    async def _in_time(self, work: Awaitable[ChartResponse]) -> ChartResponse:
        try:
            async with asyncio.timeout(self._desk.settings.timeout or None) as bound:
                return await work
        except CallTimeout:
            return failure(504, _LATE)
        except OpenbellError as error:
            return failed(error)
        except Exception as error:
            if isinstance(error, TimeoutError) and bound.expired():  # other timeouts are faults of something inside
                return failure(504, _LATE)
            log.exception("a request to the chart API failed")
            return failure(500, "Internal Server Error")

    async def picture(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """The ASGI application of stored pictures. Whoever has the name may read: it cannot be guessed."""
        name = scope["path"].removeprefix(PATH)
        data = None
        if scope["method"] in {"GET", "HEAD"} and expiry_of(name) is not None:
            data = await self._desk.threads.run(self._desk.chart_images.pictures.get, name)
        if data is None:
            await _NO_PICTURE.send(send, [])
            return
        shown = ChartResponse(200, data, f"image/{name.rpartition('.')[2]}")
        await shown.send(send, [])


def _as_vendor(request: Scope, refusal: GuardRefusal) -> GuardRefusal:
    """Returns a refusal with the vendor's status: 401 if there is no key, and 403 if it is wrong."""
    has_key = any(header == b"authorization" for header, _ in request["headers"])
    if has_key:
        return replace(refusal, status=403) if refusal.status == 401 else refusal
    return replace(refusal, status=401, reason="unauthorized") if refusal.reason == "forbidden" else refusal


async def _body(receive: Receive) -> bytes | None:
    """Returns the body of a request; None if the client has gone, or the guard has refused the rest of it."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=50))


def _key_in_address(scope: Scope) -> GuardRefusal | None:
    """Returns the refusal of a request with a key in its address: proxies and browsers store addresses.

    The vendor accepts its own keys there; tokens of this gateway come in headers only.
    """
    if b"key=" not in scope["query_string"]:
        return None
    try:
        given = _query(scope).get("key")
    except ValueError:
        return None
    return GuardRefusal(401, "unauthorized", "send the key in the header x-api-key") if given else None


class PlanLimits:
    """Counts the requests of principals."""

    def __init__(self, plan: Plan, wall: Callable[[], float] = time.time) -> None:
        """`wall` returns the time of the machine."""
        self._plan = plan
        self._limits = CallLimits({_LIMIT_KIND: Rate(plan.per_second * 60, plan.burst)})
        self._wall = wall
        self._day = 0
        self._counts: dict[str, int] = {}

    def take(self, principal: str) -> GuardRefusal | None:
        """Take one request. Returns why there is none left."""
        now = self._wall()
        if int(now // _DAY) != self._day:
            self._day, self._counts = int(now // _DAY), {}
        if principal not in self._counts and len(self._counts) >= _MOST_PRINCIPALS:
            principal = ""
        used = self._counts.get(principal, 0)
        if used >= self._plan.per_day:
            return GuardRefusal(429, "quota", "Limit Exceeded", _DAY - now % _DAY)
        wait = self._limits.take(principal, _LIMIT_KIND)
        if wait is not None:
            return GuardRefusal(429, "rate_limited", "Too Many Requests", ceil(wait))
        self._counts[principal] = used + 1
        return None

    def remaining(self, principal: str) -> int:
        """Returns how many requests are left of the day."""
        return max(0, self._plan.per_day - self._counts.get(principal, 0))
