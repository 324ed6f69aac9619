"""The token endpoint: tokens for a code, and for a refresh token, which is replaced each time.

A refresh token that is used a second time was copied, so its whole family is revoked. There is one exception, for a client
that lost the response: the same request within 10 s gets the very same tokens again, unless the new refresh token has been
used. They are computed from the old token and a key of the gateway: no second line of tokens begins, and none is stored in
clear.
"""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from openbell.gateway.oauth import secret_texts
from openbell.gateway.oauth.clients import Clients
from openbell.gateway.oauth.documents import CODE_GRANT, REFRESH_GRANT
from openbell.gateway.oauth.recording import OAuthLog
from openbell.gateway.oauth.requests import OAuthFault, form_parameters, json_response, required
from openbell.gateway.oauth.resources import Resources
from openbell.gateway.oauth.scopes import scope_text
from openbell.gateway.oauth.secret_texts import base64url, derived, digest, equal, is_secret, new_secret
from openbell.market.clock import Clock
from openbell.stores.access import grants
from openbell.stores.access.clients import OAuthClient
from openbell.stores.access.grants import ACCESS, REFRESH, Code, Grant, Token
from openbell.stores.access.scopes import with_included
from openbell.stores.access.store import AccessStore

log = logging.getLogger(__name__)

ACCESS_SECONDS = 15 * 60.0
REFRESH_SECONDS = 30 * 86_400.0
CONSENT_SECONDS = 90 * 86_400.0
"""How long a consent lasts, however often its tokens are refreshed."""
RETRY_SECONDS = 10.0
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


@dataclass(frozen=True, slots=True)
class Issued:
    """Tokens for a client: their texts, and the access token as it is stored."""

    access: str
    refresh: str | None
    stored: Token


class TokenEndpoint:
    """Answers POST /token and POST /revoke."""

    def __init__(
        self, store: AccessStore, clients: Clients, resources: Resources, clock: Clock, record: OAuthLog
    ) -> None:
        self._record = record
        self._store = store
        self._clients = clients
        self._resources = resources
        self._clock = clock

    async def issue(self, request: Request) -> Response:
        """Answer a token request."""
        form = await form_parameters(request)
        client = await self._authenticated(request, form, "token")
        kind = required(form, "grant_type")
        try:
            if kind not in {CODE_GRANT, REFRESH_GRANT}:
                raise OAuthFault("unsupported_grant_type", f"grant_type must be {CODE_GRANT} or {REFRESH_GRANT}")
            if kind not in client.grant_types:
                raise OAuthFault("unauthorized_client", "the client did not register for this grant_type")
            issued = await (self._for_code(client, form) if kind == CODE_GRANT else self._for_refresh(client, form))
        except OAuthFault:
            self._record.add(request, "token", "refused", client=client.id)
            raise
        user, scopes = issued.stored.grant.subject, issued.stored.scopes
        self._record.add(request, "token", "ok", user=user, client=client.id, scopes=scopes)
        content = {
            "access_token": issued.access,
            "token_type": "Bearer",
            "expires_in": int(issued.stored.expires_at - self._clock.epoch()),
            "scope": scope_text(issued.stored.scopes),
        }
        return json_response(content if issued.refresh is None else {**content, "refresh_token": issued.refresh})

    async def revoke(self, request: Request) -> Response:
        """Answer a revocation request (RFC 7009): all tokens of the same consent are invalid at once.

        A token that is unknown, or of another client, is answered in the same way, and nothing is revoked.
        """
        form = await form_parameters(request)
        client = await self._authenticated(request, form, "revoke")
        text = required(form, "token")
        if any(is_secret(text, prefix) for prefix in (secret_texts.ACCESS, secret_texts.REFRESH)):
            found = await self._store.read(grants.find_token, digest(text))
            if found is not None and found.grant.client_id == client.id:
                grant, now = found.grant.id, self._clock.epoch()
                await self._store.write(grants.revoke, grant, now)
                self._record.add(request, "revoke", "ok", user=found.grant.subject, client=client.id)
        return json_response({})

    async def _authenticated(self, request: Request, form: dict[str, str], what: str) -> OAuthClient:
        """Returns the client of a request. Raises `OAuthFault`, which is recorded."""
        try:
            return await self._clients.authenticate(request, form)
        except OAuthFault:
            self._record.add(request, what, "refused")  # the id that was given may be anything, even a secret
            raise

    async def _for_code(self, client: OAuthClient, form: dict[str, str]) -> Issued:
        text, verifier = required(form, "code"), required(form, "code_verifier")
        if not _VERIFIER.fullmatch(verifier):
            raise OAuthFault("invalid_grant", "code_verifier must have 43 to 128 characters: letters, digits, - . _ ~")
        code = await self._find_code(text, client)
        if code.used_at is None:
            _check_code(code, form.get("redirect_uri"), verifier)
        now = self._clock.epoch()
        access = self._access(new_secret(secret_texts.ACCESS), code.grant, code.grant.scopes, form, now)
        refresh = new_secret(secret_texts.REFRESH) if REFRESH_GRANT in client.grant_types else None
        tokens = [access.stored]
        if refresh is not None:
            tokens.append(_refresh(refresh, code.grant, code.grant.scopes, now))
        if not await self._store.write(grants.redeem_code, code, tokens, now):
            log.warning("a code of the client %s was used twice, or too late", client.id)
            raise _bad_code()
        return Issued(access.access, refresh, access.stored)

    async def _find_code(self, text: str, client: OAuthClient) -> Code:
        if is_secret(text, secret_texts.CODE):
            found = await self._store.read(grants.find_code, digest(text))
            if found is not None and found.grant.client_id == client.id:
                return found
        raise _bad_code()

    async def _for_refresh(self, client: OAuthClient, form: dict[str, str]) -> Issued:
        text = required(form, "refresh_token")
        old = None
        if is_secret(text, secret_texts.REFRESH):
            old = await self._store.read(grants.find_token, digest(text))
        if old is None or old.kind != REFRESH or old.grant.client_id != client.id:
            raise _bad_refresh()
        now, key, used = self._clock.epoch(), await self._store.key(), old.hash
        if now >= _end_of(old.grant):
            raise _bad_refresh()
        access = self._access(derived(key, secret_texts.ACCESS, text), old.grant, old.scopes, form, now)
        refresh = derived(key, secret_texts.REFRESH, text)
        following = _refresh(refresh, old.grant, old.scopes, now)
        stored = await self._store.write(
            grants.replace_refresh, used, access.stored, following, now, now - RETRY_SECONDS
        )
        if stored is None:
            log.warning("a refresh token of the client %s was used twice, or too late", client.id)
            raise _bad_refresh()
        return Issued(access.access, refresh, stored)

    def _access(self, text: str, grant: Grant, scopes: frozenset[str], form: dict[str, str], now: float) -> Issued:
        """Returns an access token for what a request asks, which is at most what was granted. Raises `OAuthFault`."""
        wanted = frozenset(form.get("scope", "").split()) or scopes
        if not wanted <= with_included(scopes) or not scopes:
            raise OAuthFault("invalid_scope", "scope has more than the user granted")
        resource = self._resources.known(form.get("resource", grant.resource))
        if resource is None or not self._resources.covers(grant.resource, resource):
            raise OAuthFault("invalid_target", "resource is not what the user granted")
        return Issued(
            text, None, Token(digest(text), ACCESS, grant, wanted, resource, min(now + ACCESS_SECONDS, _end_of(grant)))
        )


def _refresh(text: str, grant: Grant, scopes: frozenset[str], now: float) -> Token:
    return Token(digest(text), REFRESH, grant, scopes, grant.resource, min(now + REFRESH_SECONDS, _end_of(grant)))


def _end_of(grant: Grant) -> float:
    """Returns when the last token of a consent expires: then the user is asked again."""
    return grant.created_at + CONSENT_SECONDS


def _check_code(code: Code, redirect_uri: str | None, verifier: str) -> None:
    """Raise `OAuthFault` if a code was issued for another redirect URI or another verifier (PKCE, S256)."""
    if redirect_uri is not None and redirect_uri != code.redirect_uri:
        raise OAuthFault("invalid_grant", "redirect_uri is not the one of the authorization request")
    if not equal(base64url(hashlib.sha256(verifier.encode()).digest()), code.challenge):
        raise OAuthFault("invalid_grant", "code_verifier does not belong to the code_challenge")


def _bad_code() -> OAuthFault:
    return OAuthFault("invalid_grant", "the code is unknown, expired, used, or of another client")


def _bad_refresh() -> OAuthFault:
    return OAuthFault("invalid_grant", "the refresh token is unknown, expired, used, revoked, or of another client")
