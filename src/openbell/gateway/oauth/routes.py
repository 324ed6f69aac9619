"""All routes of the authorization server."""

from __future__ import annotations

from starlette.routing import Route

from openbell.gateway.guard.limits import CallLimits
from openbell.gateway.oauth.authorize import Authorize, as_pages
from openbell.gateway.oauth.clients import Clients
from openbell.gateway.oauth.documents import DocumentClient, Documents
from openbell.gateway.oauth.faults import answered
from openbell.gateway.oauth.metadata import AUTHORIZE, CONSENT, REGISTER, REVOKE, TOKEN, metadata_routes
from openbell.gateway.oauth.passphrases import Cost, SignIn
from openbell.gateway.oauth.recording import OAuthLog
from openbell.gateway.oauth.resources import Resources
from openbell.gateway.oauth.token_endpoint import TokenEndpoint
from openbell.market.clock import Clock, SystemClock
from openbell.stores.access.store import AccessStore


def oauth_routes(
    store: AccessStore,
    resources: Resources,
    outbound: DocumentClient,
    clock: Clock | None = None,
    cost: Cost = Cost(),  # noqa: B008 - immutable
    *,
    limits: CallLimits | None = None,
    record: OAuthLog | None = None,
) -> list[Route]:
    """Returns the routes of the metadata, the authorization endpoint and its page, and the token endpoint.

    `outbound` fetches client-id metadata documents. `cost` is that of new comparisons with unknown users. `limits` has
    the rate of sign-ins of an address, `record` writes the audit log.
    """
    clock, record = clock or SystemClock(), record or OAuthLog()
    clients = Clients(store, Documents(store, outbound, clock), clock, record)
    sign_in = SignIn(store, clock, cost, limits)
    authorize = Authorize(store, clients, sign_in, resources, clock, record)
    tokens = TokenEndpoint(store, clients, resources, clock, record)
    return [
        *metadata_routes(resources),
        Route(AUTHORIZE, as_pages(authorize.show), methods=["GET"]),
        Route(CONSENT, as_pages(authorize.decide), methods=["POST"]),
        Route(TOKEN, answered(tokens.issue), methods=["POST"]),
        Route(REVOKE, answered(tokens.revoke), methods=["POST"]),
        Route(REGISTER, answered(clients.register), methods=["POST"]),
    ]
