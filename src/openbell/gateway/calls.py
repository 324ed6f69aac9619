"""What happens around each call of a tool, of the quotes API and of the chart API, in one order:

1. token: who asks;
2. slot: how many requests this principal, and all together, have at once. It is held until the response is sent;
3. scope: what the token must be allowed. A tool is named in the body, which is read only for those who hold a slot;
4. rate: how many calls a principal has per minute. A call that is refused before does not count;
5. the call itself;
6. record: metrics and the audit log, also for what was refused at 3 and 4, and at 2 if the call is known there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.types import Scope as ASGIScope

from openbell.desk.settings import Settings
from openbell.gateway.admission import Admission
from openbell.gateway.guard.audit import AuditEntry, AuditLog
from openbell.gateway.guard.headers import address_of
from openbell.gateway.guard.limits import CallLimits, Claim, Slots, rates_of
from openbell.gateway.guard.metrics import GatewayMetrics
from openbell.gateway.guard.refusals import GuardRefusal
from openbell.gateway.guard.responses import request_id_of
from openbell.protocol.session import Principal, Scope
from openbell.protocol.tool import Effect, Tool
from openbell.stores.threads import CALLER


class CallWatch:
    """Limits, counts and records the calls of all servers."""

    def __init__(self, settings: Settings, metrics: GatewayMetrics, audit: AuditLog | None) -> None:
        """`audit` is None for a desk that may change nothing in its home."""
        self._limits = CallLimits(rates_of(settings))
        self._slots = Slots(settings.max_requests, settings.max_requests_each)
        self._metrics = metrics
        self._audit = audit

    def claim(self, principal: Principal) -> Claim | GuardRefusal:
        """Returns a slot for a request, or why there is none."""
        return self._slots.claim(principal.subject)

    def limit(self, principal: Principal, scope: Scope) -> GuardRefusal | None:
        """Returns why a call is refused now; None if it may go on."""
        return self._limits.refusal(principal.subject, str(scope))

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
            number = request_id_of(request)
            entry = AuditEntry(
                time.time(),
                number,
                principal.subject,
                server,
                tool,
                scope,
                outcome,
                seconds * 1000,
                address_of(request),
                principal.client,
                principal.token,
            )
            self._audit.record(entry)


@dataclass(frozen=True, slots=True)
class HttpCall:
    """What a request calls."""

    name: str
    """In metrics and in the audit log."""
    kind: str
    """The scope in the audit log."""
    needed: frozenset[Scope]
    """The scopes that a token must have."""
    what: str
    """What needs them, in refusals."""
    changes: bool = False
    """True if it changes something: a request without a token may only read."""


@dataclass(slots=True)
class CallOutcome:
    """How a call ended, as the audit log has it."""

    text: str = "cancelled"


def tool_call(tool: Tool) -> HttpCall:
    """Returns the call of a tool. A token for reading alone must not write, whatever the tool's own scope is."""
    writes = tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}
    needed = frozenset({tool.scope, Scope.WRITE} if writes and tool.scope is Scope.READ else {tool.scope})
    return HttpCall(tool.name, str(tool.scope), needed, tool.name, tool.effect is not Effect.READ)


class Calls:
    """The calls of one server."""

    def __init__(self, server: str, resource: str, admission: Admission, watch: CallWatch) -> None:
        """`server` is the name in metrics and the audit log, `resource` the URL for which tokens are issued."""
        self._server = server
        self._resource = resource
        self._admission = admission
        self._watch = watch

    async def enter(
        self, request: ASGIScope, call: HttpCall | None = None, principal: Principal | None = None
    ) -> tuple[Principal, Claim] | GuardRefusal:
        """Check token and slot. Returns who asks and the slot, which must be released, or the refusal, which is counted.

        `call` is None if only the body names it; `principal` is one that has proved itself without a token.
        """
        began = time.perf_counter()
        found = principal or await self._admission.admit(request, self._resource)
        if isinstance(found, GuardRefusal):
            return self.refuse(found)
        slot = self._watch.claim(found)
        if isinstance(slot, GuardRefusal):
            if call is not None:
                self.record(request, found, call, "refused", began)
            return self.refuse(slot)
        CALLER.set(found.subject)  # what it makes threads do waits in the queue of its principal
        return found, slot

    def refusal(
        self,
        request: ASGIScope,
        principal: Principal,
        call: HttpCall,
        rate: Callable[[], GuardRefusal | None],
        began: float,
    ) -> GuardRefusal | None:
        """Check scope and rate. Returns the refusal, which is counted and recorded; None if the call may go on."""
        found = self._lacking(request, principal, call) or rate()
        if found is None:
            return None
        self.record(request, principal, call, "refused", began)
        return self.refuse(found)

    @contextmanager
    def recorded(self, request: ASGIScope, principal: Principal, call: HttpCall, began: float) -> Iterator[CallOutcome]:
        """Record the end of a call, however it ends: what was cancelled may have changed something all the same."""
        outcome = CallOutcome()
        try:
            yield outcome
        except Exception:
            outcome.text = "error"
            raise
        finally:
            self.record(request, principal, call, outcome.text, began)

    def record(self, request: ASGIScope, principal: Principal, call: HttpCall, outcome: str, began: float) -> None:
        """Record the end of a call."""
        self._watch.called(request, self._server, call.name, call.kind, principal, outcome, began)

    def refuse(self, refusal: GuardRefusal) -> GuardRefusal:
        """Count a refusal and return it."""
        self._watch.refused(refusal.reason)
        return refusal

    def _lacking(self, request: ASGIScope, principal: Principal, call: HttpCall) -> GuardRefusal | None:
        if lacking := call.needed - principal.scopes:
            return self._admission.lacks(request, lacking, principal, self._resource, call.what)
        if principal.anonymous and call.changes:
            return self._admission.needs_token(request, self._resource, call.what)
        return None
