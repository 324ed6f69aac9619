"""The ASGI application of the chart API. The checks come in this order: path, method, key, scope, slot, limits."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from time import perf_counter
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from openbell.charts.config.validation import plan_of
from openbell.desk.chart_image.pictures import PATH, expiry_of
from openbell.desk.desk import Desk
from openbell.gateway.admission import Admission
from openbell.gateway.chart_img.bodies import Answer, failure, refusal_body
from openbell.gateway.chart_img.charts import Charts, failed
from openbell.gateway.chart_img.limits import PlanLimits
from openbell.gateway.guard.refusals import Refusal
from openbell.gateway.quotes.keys import with_token
from openbell.gateway.watching import CallWatch
from openbell.market.errors import CallTimeout, OpenbellError
from openbell.protocol.session import Principal
from openbell.protocol.session import Scope as Permission

log = logging.getLogger(__name__)
CHART = "/v2/tradingview/advanced-chart"
STORAGE = f"{CHART}/storage"
_EXCHANGES = frozenset({"/v3/tradingview/exchange/list", "/v3/tradingview/exchanges"})
_SYMBOLS = re.compile(r"/v3/tradingview/exchange/([A-Za-z0-9_]{1,40})(?:/symbols)?")
TOOLS = ("draw", "store", "exchanges", "symbols")
"""What a request is called in metrics and in the audit log, whose server is `chart-img`."""
_NO_ROUTE = failure(404, "Route Not Found")
_NO_PICTURE = failure(404, "Not Found")


class ChartEndpoint:
    """Answers requests of the chart API, and those for stored pictures."""

    def __init__(self, desk: Desk, admission: Admission, watch: CallWatch, base: str) -> None:
        """`base` is the gateway's own URL."""
        self._desk = desk
        self._admission = admission
        self._watch = watch
        self._resource = base + CHART
        plan = plan_of(desk.settings.chart_api_plan)
        self._limits = PlanLimits(plan)
        self._charts = Charts(desk, plan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        found = self._route(scope, receive)
        if found is None:
            await _NO_ROUTE.send(send, [])
            return
        name, work = found
        request = with_token(_with_query_key(scope))
        principal = await self._admission.admit(request, self._resource)
        if isinstance(principal, Refusal):
            has_key = any(header == b"authorization" for header, _ in request["headers"])
            # The vendor answers 401 if there is no key, and 403 if it is wrong.
            status = 403 if has_key and principal.status == 401 else principal.status
            await self._refuse(
                scope, send, Refusal(status, principal.reason, principal.message, headers=principal.headers)
            )
            return
        began = perf_counter()

        def record(outcome: str) -> None:
            self._watch.called(scope, "chart-img", name, str(Permission.READ), principal, outcome, began)

        refusal = self._refusal(principal)
        if refusal is not None:
            record("refused")
            await self._refuse(scope, send, refusal)
            return
        claim = self._watch.claim(principal)  # counts its refusals
        if isinstance(claim, Refusal):
            record("refused")
            await claim.send(send, refusal_body(scope, claim))
            return
        with claim:
            answer = await self._in_time(work)
            record("ok" if answer.status < 400 else "error")
            left = self._limits.remaining(principal.subject)
            await answer.send(send, [(b"x-ratelimit-remaining", b"%d" % left)])

    def _route(self, scope: Scope, receive: Receive) -> tuple[str, Callable[[], Awaitable[Answer]]] | None:
        """Returns the name of a request and the work that answers it; None if there is no such route."""
        path, method = scope["path"], scope["method"]
        if method == "POST" and path in {CHART, STORAGE}:

            async def draw() -> Answer:
                body = await _body(receive)
                if body is None:
                    return failure(400, "Bad Request: the body ended early")
                return await self._charts.draw(body, store=path == STORAGE)

            return ("store" if path == STORAGE else "draw"), draw
        if method == "GET" and path in _EXCHANGES:
            return "exchanges", self._charts.exchanges
        if method == "GET" and (found := _SYMBOLS.fullmatch(path)) is not None:

            async def symbols() -> Answer:
                try:
                    query = _query(scope)
                except ValueError:
                    return failure(400, "Bad Request: the query has too many fields")
                return await self._charts.symbols(found[1], query)

            return "symbols", symbols
        return None

    def _refusal(self, principal: Principal) -> Refusal | None:
        if Permission.READ not in principal.scopes:
            return Refusal(403, "forbidden", "The key has not the scope read")
        return self._limits.take(principal.subject)

    async def _in_time(self, work: Callable[[], Awaitable[Answer]]) -> Answer:
        try:
            async with asyncio.timeout(self._desk.settings.timeout or None):
                return await work()
        except (TimeoutError, CallTimeout):
            return failure(504, "Timeout: the chart took too long")
        except OpenbellError as error:
            return failed(error)
        except Exception:
            log.exception("a request to the chart API failed")
            return failure(500, "Internal Server Error")

    async def _refuse(self, scope: Scope, send: Send, refusal: Refusal) -> None:
        self._watch.refused(refusal.reason)
        await refusal.send(send, refusal_body(scope, refusal))

    async def picture(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """The ASGI application of stored pictures. Whoever has the name may read: it cannot be guessed."""
        name = scope["path"].removeprefix(PATH)
        data = None
        if scope["method"] in {"GET", "HEAD"} and expiry_of(name) is not None:
            data = await self._desk.threads.run(self._desk.chart_images.pictures.get, name)
        if data is None:
            await _NO_PICTURE.send(send, [])
            return
        shown = Answer(200, data, f"image/{name.rpartition('.')[2]}")
        await shown.send(send, [])


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


def _with_query_key(scope: Scope) -> Scope:
    """Returns a GET request of v3 with the key of its query as a header: the vendor accepts both."""
    if scope["method"] != "GET" or b"key=" not in scope["query_string"]:
        return scope
    try:
        key = _query(scope).get("key", "")
    except ValueError:
        return scope
    return {**scope, "headers": [*scope["headers"], (b"x-api-key", key.encode("latin-1", "replace"))]} if key else scope
