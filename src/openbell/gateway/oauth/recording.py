"""Sign-ins, consents, tokens and registrations in the audit log, with the user and the client. Never a secret."""

from __future__ import annotations

import time
from collections.abc import Iterable

from starlette.requests import Request

from openbell.gateway.guard.audit import OAUTH, AuditEntry, AuditLog
from openbell.gateway.guard.headers import address_of
from openbell.gateway.guard.responses import request_id_of
from openbell.gateway.oauth.scopes import scope_text


class OAuthLog:
    """Adds lines to the audit log; drops them if there is none."""

    def __init__(self, audit: AuditLog | None = None) -> None:
        self._audit = audit

    def add(
        self,
        request: Request,
        what: str,
        outcome: str,
        *,
        user: str = "",
        client: str = "",
        scopes: Iterable[str] = (),
    ) -> None:
        """Record what a request has done: `sign_in`, `consent`, `token`, `revoke` or `register`; `ok` or `refused`."""
        if self._audit is None:
            return
        number = request_id_of(request.scope)
        address = address_of(request.scope)
        named = scope_text(scopes)
        self._audit.record(AuditEntry(time.time(), number, user, OAUTH, what, named, outcome, 0.0, address, client))
