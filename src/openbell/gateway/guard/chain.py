"""The parts of the guard that need no principal, around the gateway's application."""

from __future__ import annotations

from starlette.types import ASGIApp

from openbell.desk.settings import Settings
from openbell.gateway.guard.bodies import Bodies
from openbell.gateway.guard.hosts import Hosts, allowed_by
from openbell.gateway.guard.refusals import Count, Form, plain_form, uncounted
from openbell.gateway.guard.responses import Responses, page_headers


def guarded(
    app: ASGIApp, settings: Settings, port: int | None = None, count: Count = uncounted, form: Form = plain_form
) -> ASGIApp:
    """Returns the application behind the guard. `port` is the one that was bound, if the setting is 0.

    A request gets its id first, so that every refusal carries it. Host and Origin come before the body, which is not read
    before the application reads it. `count` is called with the reason of each refusal, `form` returns its body.
    """
    bodies = Bodies(app, limit=settings.body_limit, seconds=settings.body_timeout, count=count, form=form)
    return Responses(Hosts(bodies, allowed_by(settings, port), count, form), page_headers(settings))
