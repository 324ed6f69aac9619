"""Metrics in Prometheus' text format: counts of calls and refusals, latencies, open streams, memory and processor time.

And health: /healthz, the process answers; /readyz, its stores can be used, otherwise 503 with the names of those that fail;
/health, the whole report, for this home's owner and for admins. The first two are open to everyone who passes the checks of
Host and Origin, so they name parts and never causes, which may hold addresses or user names. Causes are logged.


The values of labels are bounded: unknown servers, tools, outcomes and refusals are counted as `other`.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from openbell.desk.operations.health.report import FAILING, HealthSnapshot, resident_bytes
from openbell.gateway.guard.headers import is_from_other_page, is_local
from openbell.gateway.guard.refusals import GuardRefusal
from openbell.market.plural import counted

if TYPE_CHECKING:
    from openbell.desk.events.checks import Checks
    from openbell.desk.operations.health.monitor import DeskHealth

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of latencies, in seconds."""
OUTCOMES = frozenset({"ok", "error", "refused"})
REASONS = frozenset(
    {
        "host_not_allowed", "no_host", "origin_not_allowed", "no_cors", "bad_target", "target_too_long", "headers_too_large",
        "body_too_large", "body_too_slow", "bad_length", "rate_limited", "busy", "too_many_requests", "unauthorized",
        "forbidden", "not_acceptable",
    }
)  # fmt: skip
"""Reasons of refusals that have a count of their own."""
_OTHER = "other"
_FORBIDDEN = GuardRefusal(403, "forbidden", "Metrics are served to this machine and to tokens with the scope admin.")


class GatewayMetrics:
    """Counts what the gateway does. All methods are cheap and must be called in one thread."""

    def __init__(self, tools: Mapping[str, Iterable[str]]) -> None:
        """`tools` has the tools of each server."""
        self._tools = {server: frozenset(names) for server, names in tools.items()}
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._latencies: dict[str, list[int]] = {}
        """For each server, calls in each bucket; the last one has no upper bound."""
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._refusals: Counter[str] = Counter()
        self.streams = 0
        """Streams that are open now."""

    def called(self, server: str, tool: str, outcome: str, seconds: float) -> None:
        """Count a call of a tool."""
        tools = self._tools.get(server)
        if tools is None:
            server = tool = _OTHER
        elif tool not in tools:
            tool = _OTHER
        self._calls[server, tool, outcome if outcome in OUTCOMES else _OTHER] += 1
        if (counts := self._latencies.get(server)) is None:
            counts = self._latencies[server] = [0] * (len(BUCKETS) + 1)
        counts[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[server] += seconds

    def refused(self, reason: str) -> None:
        """Count a request that was refused before it reached a tool."""
        self._refusals[reason if reason in REASONS else _OTHER] += 1

    def summary(self) -> str:
        """Returns the counts of calls and refusals in words."""
        calls, refusals = self._calls.total(), self._refusals.total()
        return f"{counted(calls, 'call')}, {counted(refusals, 'refusal')}"

    def text(self) -> str:
        """Returns all metrics in the text format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _head("openbell_calls_total", "counter", "Calls of tools.")
        for (server, tool, outcome), count in sorted(self._calls.items()):
            yield f'openbell_calls_total{{server="{server}",tool="{tool}",outcome="{outcome}"}} {count}'
        yield from _head("openbell_call_seconds", "histogram", "Time that calls took.")
        for server, counts in sorted(self._latencies.items()):
            below = 0
            for bound, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
                below += count
                yield f'openbell_call_seconds_bucket{{server="{server}",le="{bound}"}} {below}'
            yield f'openbell_call_seconds_sum{{server="{server}"}} {self._seconds[server]:.6f}'
            yield f'openbell_call_seconds_count{{server="{server}"}} {below}'
        yield from _head("openbell_refusals_total", "counter", "Requests that were refused, by reason.")
        for reason, count in sorted(self._refusals.items()):
            yield f'openbell_refusals_total{{reason="{reason}"}} {count}'
        yield from _head("openbell_open_streams", "gauge", "Event streams that are open.")
        yield f"openbell_open_streams {self.streams}"
        yield from _head("process_cpu_seconds_total", "counter", "Processor time of this process.")
        yield f"process_cpu_seconds_total {time.process_time():.3f}"
        if (memory := resident_bytes()) is not None:
            yield from _head("process_resident_memory_bytes", "gauge", "Memory of this process.")
            yield f"process_resident_memory_bytes {memory}"


def _head(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


def health_text(health: HealthSnapshot) -> str:
    """Returns the report on the health of the desk in the text format."""
    figures = health.figures
    lines = list(_head("openbell_part_failing", "gauge", "1 for each part that fails, 0 for each that works."))
    for name, part in sorted(health.parts.items()):
        lines.append(f'openbell_part_failing{{part="{name}"}} {int(part.state == FAILING)}')
    for name, value, text in (
        (
            "openbell_lag_seconds",
            figures.lag_seconds,
            "By how much the newest minute is behind, while a market is open.",
        ),
        ("openbell_buffered_bars", figures.buffered_bars, "Bars that wait for the bar database."),
        ("openbell_ledger_entries", figures.ledger_entries, "Entries of the ledger."),
        ("openbell_webhooks_waiting", figures.webhooks_waiting, "Deliveries of webhooks that wait."),
        ("openbell_webhooks_dead", figures.webhooks_dead, "Deliveries of webhooks that were given up."),
        ("openbell_free_bytes", figures.free_bytes, "Free space on the disk of the home."),
        (
            "openbell_halted",
            int(figures.halted is not None),
            "1 while trading is halted, or nobody can tell: no position is opened.",
        ),
        ("openbell_halt_unknown", int(figures.halt_unknown), "1 while the halt file cannot be read."),
    ):
        if value is not None:
            lines += [*_head(name, "gauge", text), f"{name} {value}"]
    lines += _head("openbell_lease_held", "gauge", "1 for each lease that a process holds.")
    lines += (f'openbell_lease_held{{lease="{name}"}} {int(bool(holder))}' for name, holder in figures.leases.items())
    return "".join(f"{line}\n" for line in lines)


class MetricsPage:
    """The ASGI application of /metrics."""

    def __init__(
        self,
        metrics: GatewayMetrics,
        is_admin: Callable[[Scope], Awaitable[bool]],
        health: Callable[[], Awaitable[HealthSnapshot]] | None = None,
    ) -> None:
        """`is_admin` returns True if a request has a token with the scope admin."""
        self._metrics = metrics
        self._health = health
        self._is_admin = is_admin

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """See ASGI."""
        if (not is_local(scope) or is_from_other_page(scope)) and not await self._is_admin(scope):
            await _FORBIDDEN.send(send)
            return
        text = self._metrics.text() + (health_text(await self._health()) if self._health else "")
        body = text.encode()
        headers = [
            (b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


Headers = list[tuple[bytes, bytes]]
_HEALTH_FORBIDDEN = GuardRefusal(
    403, "forbidden", "/health is served to `openbell health` and to tokens with the scope admin."
)


async def healthz(_scope: Scope, _receive: Receive, send: Send) -> None:
    """The ASGI application of /healthz."""
    await _answer(send, 200, {"status": "ok"})


class Readiness:
    """The ASGI application of /readyz. All requests within a second get the answer of the same checks."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """See ASGI."""
        failing = await self._checks.failing()
        if failing:
            await _answer(send, 503, {"status": "not ready", "failing": failing})
        else:
            await _answer(send, 200, {"status": "ready"})


class HealthReport:
    """The ASGI application of /health: the report with causes and figures, as `openbell health` prints it."""

    def __init__(self, health: DeskHealth, may_watch: Callable[[Scope], Awaitable[Headers | None]]) -> None:
        """`may_watch` returns headers to send, and None if the request has neither the home's key nor the scope admin."""
        self._health = health
        self._may_watch = may_watch

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """See ASGI."""
        headers = await self._may_watch(scope)
        if headers is None:
            await _HEALTH_FORBIDDEN.send(send)
        else:
            await _answer(send, 200, (await self._health.look()).payload(), headers)


async def _answer(send: Send, status: int, payload: dict[str, Any], more: Headers | None = None) -> None:
    body = json.dumps(payload).encode()
    headers = [
        *(more or []),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
