"""Finds clients, authenticates them at the token endpoint, and registers new ones (RFC 7591)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import secrets
from math import ceil
from urllib.parse import unquote_plus

from starlette.requests import Request
from starlette.responses import Response

from openbell.gateway.guard.limits import CallLimits
from openbell.gateway.oauth.documents import Documents, read_description
from openbell.gateway.oauth.recording import OAuthLog
from openbell.gateway.oauth.requests import OAuthFault, address_of, body_of, json_response
from openbell.gateway.oauth.scopes import SENTENCES, scope_text
from openbell.gateway.oauth.secret_texts import CLIENT_SECRET, digest, equal, new_secret
from openbell.market.clock import Clock
from openbell.net.rates import Rate
from openbell.stores.access import clients
from openbell.stores.access.clients import REGISTERED, OAuthClient
from openbell.stores.access.store import AccessStore

MOST_REGISTERED = 1000
MOST_OF_ADDRESS = 20
"""Registrations from one network address within an hour."""
IN_ALL = Rate(per_minute=10, burst=200)
"""Registrations from all addresses together, in one process."""
_IN_ALL = "registrations"
_HOUR = 3600.0
_LONGEST_ID = 512
_WRONG = "the client is unknown, or its secret is wrong"


class Clients:
    """The clients of one gateway."""

    def __init__(self, store: AccessStore, documents: Documents, clock: Clock, record: OAuthLog) -> None:
        self._record = record
        self._limits = CallLimits({_IN_ALL: IN_ALL})
        self._keeping = asyncio.Lock()
        self._store = store
        self._documents = documents
        self._clock = clock

    async def find(self, client_id: str, address: str) -> OAuthClient:
        """Returns the client of an id, whose metadata document may be fetched for an address. Raises `OAuthFault`."""
        if client_id.startswith("https://"):
            return await self._documents.client(client_id, address)
        if (found := await self._stored(client_id)) is None:
            raise OAuthFault("invalid_client", "the client is unknown: it must register first")
        return found

    async def authenticate(self, request: Request, form: dict[str, str]) -> OAuthClient:
        """Returns the client that sent a request to the token endpoint. Raises `OAuthFault`.

        Its id and secret are in the form, or in the header Authorization. A document is not fetched here: tokens are bound
        to the id, and only an authorization request needs the document.
        """
        given = request.headers.getlist("authorization")
        scheme = {"WWW_Authenticate": 'Basic realm="openbell"'} if given else {}
        client_id, secret = form.get("client_id"), form.get("client_secret")
        if given:
            basic_id, basic_secret = _basic(given)
            if secret is not None or client_id not in {None, basic_id}:
                raise OAuthFault("invalid_request", "the client is authenticated in two ways")
            client_id, secret = basic_id, basic_secret or None
        client = await self._stored(client_id) if client_id else None
        if client is None or (client.secret is None) != (secret is None):
            raise OAuthFault("invalid_client", _WRONG, 401, **scheme)
        if client.secret is not None and not equal(client.secret, digest(secret or "")):
            raise OAuthFault("invalid_client", _WRONG, 401, **scheme)
        return client

    async def _stored(self, client_id: str) -> OAuthClient | None:
        if len(client_id) > _LONGEST_ID or not client_id.isascii() or not client_id.isprintable():
            return None
        return await self._store.read(clients.find, client_id)

    async def register(self, request: Request) -> Response:
        """Answer a registration request."""
        body = await body_of(request, "application/json")
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            raise OAuthFault("invalid_client_metadata", "the body is not JSON") from None
        found = read_description(data, "client_secret_basic")
        secret = None if found.auth_method == "none" else new_secret(CLIENT_SECRET)
        now, address = self._clock.epoch(), address_of(request)
        client = OAuthClient(
            secrets.token_urlsafe(16),
            REGISTERED,
            found.name,
            found.redirect_uris,
            found.grant_types,
            found.auth_method,
            None if secret is None else digest(secret),
            address,
            now,
        )
        try:
            await self._keep(client, now)
        except OAuthFault:
            self._record.add(request, "register", "refused")
            raise
        self._record.add(request, "register", "ok", client=client.id)
        answer = {
            "client_id": client.id,
            "client_id_issued_at": int(now),
            "redirect_uris": list(client.redirect_uris),
            "grant_types": list(client.grant_types),
            "response_types": ["code"],
            "token_endpoint_auth_method": client.auth_method,
            "scope": scope_text(SENTENCES),
        }
        shown = {"client_name": client.name} if client.name else {}
        issued = {} if secret is None else {"client_secret": secret, "client_secret_expires_at": 0}
        return json_response({**answer, **shown, **issued}, 201)

    async def _keep(self, client: OAuthClient, now: float) -> None:
        """Write a registered client. Raises `OAuthFault` if there are too many."""
        await self._require_few(client, now)
        async with self._keeping:  # so that requests that come at once are counted one after the other
            await self._require_few(client, now)
            # Last: an address that has used up its own limit takes nothing of the others'.
            if (wait := self._limits.take("", _IN_ALL)) is not None:
                text = "too many registrations: try again later"
                raise OAuthFault("temporarily_unavailable", text, 503, Retry_After=str(ceil(wait)))
            if not await self._store.write(clients.put_within, client, MOST_REGISTERED, now):
                text = "too many registered clients: try again later"
                raise OAuthFault("temporarily_unavailable", text, 503, Retry_After="600")

    async def _require_few(self, client: OAuthClient, now: float) -> None:
        """Raise `OAuthFault` if the address of a client has registered as many as it may."""
        since = now - _HOUR
        of_address = await self._store.read(clients.count_registered, client.address, since)
        if of_address >= MOST_OF_ADDRESS:
            text = "too many registrations from this address: try again in an hour"
            raise OAuthFault("temporarily_unavailable", text, 429, Retry_After="3600")


def _basic(given: list[str]) -> tuple[str, str]:
    """Returns id and secret of a Basic header, whose parts are form-encoded (RFC 6749, 2.3.1). Raises `OAuthFault`."""
    scheme, _, credentials = given[0].partition(" ")
    try:
        if len(given) != 1 or scheme.lower() != "basic":
            raise ValueError
        name, colon, secret = base64.b64decode(credentials.strip(), validate=True).decode().partition(":")
        if not colon:
            raise ValueError
    except (ValueError, binascii.Error):
        text = "the header Authorization must be Basic, with the client's id and secret"
        raise OAuthFault("invalid_client", text, 401, WWW_Authenticate='Basic realm="openbell"') from None
    return unquote_plus(name), unquote_plus(secret)
