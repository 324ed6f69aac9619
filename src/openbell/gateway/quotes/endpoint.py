"""The ASGI application of the quotes API. After path and method, the order is that of `gateway/calls.py`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Sequence
from math import ceil
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Message, Receive, Scope, Send

from openbell.desk.desk import Desk
from openbell.desk.quotes.arche import bodies
from openbell.desk.quotes.arche.bodies import envelope
from openbell.desk.quotes.arche.errors import STATUSES, ApiFault
from openbell.desk.quotes.arche.local import health_of
from openbell.desk.quotes.arche.requests import API_VERSION, HISTORICAL, LIVE, TRUTH, ArcheResponse, Params
from openbell.desk.settings import Settings
from openbell.desk.settings.principals import OPERATOR
from openbell.gateway.admission import Admission, OwnKey, with_token
from openbell.gateway.calls import Calls, CallWatch, HttpCall
from openbell.gateway.guard.headers import address_of
from openbell.gateway.guard.limits import CallLimits, address_key
from openbell.gateway.guard.metrics import healthz
from openbell.gateway.guard.refusals import GuardRefusal, Headers
from openbell.gateway.guard.responses import request_id_of
from openbell.gateway.quotes.openapi import PATH as OPENAPI
from openbell.gateway.quotes.openapi import document
from openbell.net.rates import Rate, Standing
from openbell.protocol.call import truth
from openbell.protocol.session import Principal
from openbell.protocol.session import Scope as Permission
from openbell.servers.arche.tools import basis_of

TOOLS = {LIVE: "live", HISTORICAL: "historical"}
"""What a request is called in metrics and in the audit log, whose server is `quotes`."""
_READ = frozenset({Permission.READ})
CALLS = {path: HttpCall(name, str(Permission.READ), _READ, "the quotes API") for path, name in TOOLS.items()}
_MOST_PARAMETERS = 50
_HEALTH_SECONDS = 0.25
"""How long a probe waits for checks: a process that answers is alive, however slow its stores are."""
_OWN = Principal(OPERATOR, _READ)
_NO_PATH = GuardRefusal(404, "not_found", f"There is no such path; there are {LIVE}, {HISTORICAL} and {OPENAPI}.")
_NO_METHOD = GuardRefusal(405, "no_method", "The quotes API has GET only.", headers=((b"allow", b"GET"),))
_NO_QUERY = ApiFault("VALIDATION_ERROR", "The query is not a list of up to 50 parameters in UTF-8")
_TAG = re.compile(r'\s*(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)|\s*,')
KINDS = {LIVE: ("quotes", "quotes_live"), HISTORICAL: ("quotes", "quotes_historical")}
"""The limits of each path."""
HEALTH = ("health",)
METADATA = ("metadata",)
PREFIX = f"/{API_VERSION}/"
_CODES = {status: code for code, status in STATUSES.items()} | {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}
"""The codes of refusals. Two are not in the contract: they are about the path and the method, not about quotes."""


class QuotesEndpoint:
    """Answers requests of the quotes API, and those of `/healthz`."""

    def __init__(self, desk: Desk, admission: Admission, watch: CallWatch, base: str) -> None:
        """`base` is the gateway's own URL."""
        self._desk = desk
        self._calls = Calls("quotes", base + LIVE, admission, watch)
        self._base = base
        self._rates = QuoteRates(desk.settings)
        self.own_key = OwnKey()

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """See ASGI."""
        path = scope["path"]
        if path != OPENAPI and path not in TOOLS:
            await self._refuse(scope, send, _NO_PATH)
        elif scope["method"] != "GET":
            await self._refuse(scope, send, _NO_METHOD)
        elif path == OPENAPI:
            await self._document(scope, send)
        else:
            await self._quotes(scope, send)

    async def _quotes(self, scope: Scope, send: Send) -> None:
        is_own, call, began = self.own_key.opens(scope), CALLS[scope["path"]], perf_counter()
        entered = await self._calls.enter(with_token(scope), call, _OWN if is_own else None)
        if isinstance(entered, GuardRefusal):
            await entered.send(send, enveloped(scope, entered))
            return
        principal, claim = entered
        kinds = () if is_own else KINDS[scope["path"]]
        # What this machine asks through its own key, it could ask without the gateway.
        with claim:
            refusal = self._calls.refusal(
                scope, principal, call, lambda: self._rates.take(principal.subject, kinds), began
            )
            if refusal is not None:
                await refusal.send(send, enveloped(scope, refusal))
                return
            headers = self._rates.headers(principal.subject, kinds)
            with self._calls.recorded(scope, principal, call, began) as outcome:
                response = await self._response(scope)
                outcome.text = "ok" if response.status < 400 else "error"
            await self._send(scope, send, response, [*headers, *(self.own_key.answer(scope) if is_own else [])])

    async def _response(self, scope: Scope) -> ArcheResponse:
        try:
            params = _params(scope["query_string"])
        except ValueError:
            return bodies.failure(_NO_QUERY, request_id_of(scope))
        at = self._desk.clock.epoch()
        found = await self._desk.arche.local.get(scope["path"], params, request_id_of(scope))
        if found.facts is None:
            return found
        shown = json.dumps(truth(self._desk.settings, at, basis_of(found)))
        return ArcheResponse(found.status, {**found.headers, TRUTH: shown}, found.body)

    async def _send(self, scope: Scope, send: Send, response: ArcheResponse, more: Headers) -> None:
        """Send a response, or that the client has it already."""
        status, body, headers = response.status, response.body, dict(response.headers)
        condition = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"if-none-match")
        if "etag" in headers and condition and matches(condition, headers["etag"]):
            status, body = 304, b""
            del headers["content-type"]
        await _send(send, status, [*((a.encode(), b.encode()) for a, b in headers.items()), *more], body)

    async def _refuse(self, scope: Scope, send: Send, refusal: GuardRefusal) -> None:
        await self._calls.refuse(refusal).send(send, enveloped(scope, refusal))

    # What needs no token

    async def _document(self, scope: Scope, send: Send) -> None:
        address = address_key(address_of(scope))
        if (refusal := self._rates.take(address, METADATA)) is not None:
            await self._refuse(scope, send, refusal)
            return
        headers = self._rates.headers(address, METADATA)
        response = bodies.plain(200, document(self._base))
        await self._send(scope, send, response, headers)

    async def health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI application of /healthz. The status is 200 as long as the process answers."""
        is_own = self.own_key.opens(scope)
        address, kinds = address_key(address_of(scope)), () if is_own else HEALTH
        if (refusal := self._rates.take(address, kinds)) is not None:
            await self._refuse(scope, send, refusal)
            return
        headers = self._rates.headers(address, kinds)
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                failing = await self._desk.arche.local.health.failing()
        except TimeoutError:
            failing = ["checks"]
        more = [*headers, *(self.own_key.answer(scope) if is_own else [])]
        if failing:
            await self._send(scope, send, health_of(failing), more)
        else:
            await healthz(scope, receive, _with_headers(send, more))


def _params(query: bytes) -> Params:
    """Returns the parameters of a query. Raises `ValueError` if it is none."""
    return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)


async def _send(send: Send, status: int, headers: Headers, body: bytes) -> None:
    length = [] if status == 304 else [(b"content-length", b"%d" % len(body))]
    safe = (b"x-content-type-options", b"nosniff")
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length, safe]})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send, more: Headers) -> Send:
    def sent(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            changed: dict[str, Any] = {**message, "headers": [*message["headers"], *more]}
            return send(changed)
        return send(message)

    return sent


def matches(condition: str, tag: str) -> bool:
    """Returns True if the value of If-None-Match has a tag: in a list, as a weak one, or as `*`.

    Tags are compared weakly, as RFC 9110 demands for this header. A value that is not a list of tags matches nothing.
    """
    if condition.strip() == "*":
        return True
    at, found = 0, False
    while at < len(condition):
        part = _TAG.match(condition, at)
        if part is None:
            return False
        found = found or part[1] == tag
        at = part.end()
    return found


class QuoteRates:
    """Counts requests. A request that one of its limits refuses counts for none."""

    def __init__(self, settings: Settings) -> None:
        names = {name for kinds in (*KINDS.values(), HEALTH, METADATA) for name in kinds}
        rates = {name: int(settings.by_name[f"rate_{name}"]) for name in names}
        # A whole minute's requests may come at once.
        self._limits = CallLimits({name: Rate(rate, rate) for name, rate in rates.items() if rate})

    def take(self, principal: str, kinds: Sequence[str]) -> GuardRefusal | None:
        """Take one request of all kinds. Returns why there is none left."""
        for kind in kinds:
            standing = self._limits.standing(principal, kind)
            if standing is not None and standing.wait:
                message = f"Too many requests: retry later. The limit is OPENBELL_RATE_{kind.upper()} per minute."
                return GuardRefusal(429, "rate_limited", message, standing.wait, headers=tuple(_headers(standing)))
        for kind in kinds:
            self._limits.take(principal, kind)
        return None

    def headers(self, principal: str, kinds: Sequence[str]) -> Headers:
        """Returns the headers of the tightest limit."""
        left = [found for kind in kinds if (found := self._limits.standing(principal, kind)) is not None]
        return _headers(min(left, key=lambda each: each.remaining)) if left else []


def _headers(standing: Standing) -> Headers:
    """Returns the headers; the reset is in seconds from now."""
    return [
        (b"x-ratelimit-limit", b"%d" % standing.limit),
        (b"x-ratelimit-remaining", b"%d" % standing.remaining),
        (b"x-ratelimit-reset", b"%d" % ceil(standing.reset)),
    ]


def body_of(scope: Scope, refusal: GuardRefusal) -> bytes:
    """Returns the body of a refusal: an error envelope for the quotes API, else the gateway's own form."""
    return enveloped(scope, refusal) if scope["path"].startswith(PREFIX) else refusal.body()


def enveloped(scope: Scope, refusal: GuardRefusal) -> bytes:
    """Returns a refusal as an error envelope."""
    code = _CODES.get(refusal.status, "VALIDATION_ERROR")
    return json.dumps(envelope(code, refusal.status, refusal.message, request_id_of(scope))).encode()
