"""What happens around each call of a tool: slots, rate limits, metrics and the audit log."""

from __future__ import annotations

import time

from starlette.types import Scope as ASGIScope

from openbell.desk.settings import Settings
from openbell.gateway.guard.addresses import address_of
from openbell.gateway.guard.audit import Audit, Entry
from openbell.gateway.guard.limits import Claim, Limits, Slots, rates_of
from openbell.gateway.guard.metrics import Metrics
from openbell.gateway.guard.refusals import Refusal
from openbell.protocol.session import Principal, Scope


class CallWatch:
    """Limits, counts and records the calls of all servers."""

    def __init__(self, settings: Settings, metrics: Metrics, audit: Audit | None) -> None:
        """`audit` is None for a desk that may change nothing in its home."""
        self._limits = Limits(rates_of(settings))
        self._slots = Slots(settings.max_requests, settings.max_requests_each)
        self._metrics = metrics
        self._audit = audit

    def claim(self, principal: Principal) -> Claim | Refusal:
        """Returns a slot for a request, or why there is none."""
        found = self._slots.claim(principal.subject)
        if isinstance(found, Refusal):
            self._metrics.refused(found.reason)
        return found

    def limit(self, principal: Principal, scope: Scope) -> Refusal | None:
        """Returns why a call is refused now; None if it may go on."""
        found = self._limits.refusal(principal.subject, str(scope))
        if found is not None:
            self._metrics.refused(found.reason)
        return found

    def refused(self, reason: str) -> None:
        """Count a refusal."""
        self._metrics.refused(reason)

    def called(
        self,
        request: ASGIScope,
        server: str,
        tool: str,
        scope: str,
        principal: Principal,
        outcome: str,
        began: float,
    ) -> None:
        """Record the end of a call: `outcome` is `ok`, `error`, `cancelled` or `refused`, `began` of the same clock."""
        seconds = time.perf_counter() - began
        self._metrics.called(server, tool, outcome, seconds)
        if self._audit is not None:
            number = request.get("state", {}).get("request_id", "")
            entry = Entry(
                time.time(),
                number,
                principal.subject,
                server,
                tool,
                scope,
                outcome,
                seconds * 1000,
                address_of(request),
            )
            self._audit.record(entry)
