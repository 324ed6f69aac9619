"""The authorization endpoint: checks a client's request, shows the consent page, and answers with a code."""

from __future__ import annotations

import logging
import re
import secrets
from math import ceil
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from openbell.gateway.oauth import redirects
from openbell.gateway.oauth.clients import Clients
from openbell.gateway.oauth.consent_page import (
    FORM_SECONDS,
    AuthorizationRequest,
    ConsentPage,
    Forms,
    OpenedForm,
    consent_page,
    message_page,
)
from openbell.gateway.oauth.passphrases import Locked, SignIn
from openbell.gateway.oauth.recording import OAuthLog
from openbell.gateway.oauth.requests import Handler, OAuthFault, address_of, form_parameters, query_parameters, required
from openbell.gateway.oauth.resources import Resources
from openbell.gateway.oauth.scopes import DEFAULT, in_order, parse_scopes, scope_text
from openbell.gateway.oauth.secret_texts import CODE, digest, new_secret
from openbell.market.clock import Clock
from openbell.market.errors import OpenbellError
from openbell.protocol.session import Scope
from openbell.stores.access import grants
from openbell.stores.access.clients import OAuthClient
from openbell.stores.access.grants import Code, Grant
from openbell.stores.access.scopes import with_included
from openbell.stores.access.store import AccessStore
from openbell.stores.access.users import User

log = logging.getLogger(__name__)

CODE_SECONDS = 60.0
_LONGEST_STATE = 4096
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_NO_USERS = "No user can sign in yet. Run this in a shell on the machine of the desk: openbell passphrase"
_WRONG = "The name or the passphrase is wrong."


class Authorize:
    """Answers GET /authorize and the form of its page."""

    def __init__(
        self,
        store: AccessStore,
        clients: Clients,
        sign_in: SignIn,
        resources: Resources,
        clock: Clock,
        record: OAuthLog,
    ) -> None:
        self._record = record
        self._store = store
        self._clients = clients
        self._sign_in = sign_in
        self._resources = resources
        self._clock = clock

    # The request of a client

    async def show(self, request: Request) -> Response:
        """Answer an authorization request with the consent page."""
        parameters = query_parameters(request)
        client = await self._clients.find(required(parameters, "client_id"), address_of(request))
        redirect_uri = _redirect_uri(client, parameters.get("redirect_uri"))
        state = parameters.get("state")
        if state is not None and len(state) > _LONGEST_STATE:
            raise OAuthFault("invalid_request", f"state is longer than {_LONGEST_STATE} characters")
        try:
            asked = self._checked(client, redirect_uri, parameters)
        except OAuthFault as fault:
            return self._refused(redirect_uri, state, fault)
        problem = "" if await self._sign_in.has_users() else _NO_USERS
        return await self._form(client, asked, problem=problem)

    def _checked(self, client: OAuthClient, redirect_uri: str, parameters: dict[str, str]) -> AuthorizationRequest:
        """Returns the request that parameters make. Raises `OAuthFault` with an error for the client."""
        if required(parameters, "response_type") != "code":
            raise OAuthFault("unsupported_response_type", "response_type must be code")
        challenge = required(parameters, "code_challenge")
        if parameters.get("code_challenge_method") != "S256":
            raise OAuthFault("invalid_request", "code_challenge_method must be S256")
        if not _CHALLENGE.fullmatch(challenge):
            raise OAuthFault("invalid_request", "code_challenge must be 43 characters of base64url")
        names = parameters.get("scope", "").split()
        scopes = parse_scopes(names) if names else DEFAULT
        if scopes is None:
            raise OAuthFault("invalid_scope", f"the scopes are {', '.join(Scope)}")
        resource = self._resources.known(parameters.get("resource", self._resources.base))
        if resource is None:
            raise OAuthFault("invalid_target", "resource is not an endpoint of this gateway")
        ordered = tuple(in_order(scopes))
        return AuthorizationRequest(client.id, redirect_uri, ordered, resource, challenge, parameters.get("state"))

    async def _form(
        self, client: OAuthClient, asked: AuthorizationRequest, status: int = 200, *, problem: str = "", name: str = ""
    ) -> HTMLResponse:
        sealed = (await self._forms()).seal(asked, self._clock.epoch())
        consent = ConsentPage(client, asked, self._resources.base, sealed.token, problem=problem)
        if name:
            consent = ConsentPage(client, asked, self._resources.base, sealed.token, name, problem)
        page = consent_page(consent, status)
        page.set_cookie(
            sealed.cookie_name,
            sealed.cookie,
            max_age=int(FORM_SECONDS),
            path="/",
            secure=self._resources.is_secure,
            httponly=True,
            samesite="strict",
        )
        return page

    def _refused(self, redirect_uri: str, state: str | None, fault: OAuthFault) -> Response:
        """Send an error back to a program on the user's machine; for other clients, show a page with a link.

        Nothing is known about such a client, which could otherwise use this gateway to lead users anywhere.
        """
        url = self._answer(redirect_uri, state=state, error=fault.error, error_description=fault.description)
        if redirects.is_loopback(redirect_uri):
            return _redirect(url)
        link = (url, f"Back to {redirects.host_of(redirect_uri)}")
        return message_page("The request cannot be answered", f"{fault.description}.", 400, link)

    # The form of the page

    async def decide(self, request: Request) -> Response:
        """Answer the form: check the sign-in and redirect with a code, or show the form again."""
        try:
            fields, opened = await self._opened(request)
        except OAuthFault:
            self._record.add(request, "consent", "refused")  # what was sent may be of anybody
            raise
        asked = opened.request
        if fields.get("action") == "deny":
            self._record.add(request, "consent", "refused", client=asked.client_id, scopes=asked.scopes)
            text = "the user refused"
            return _redirect(
                self._answer(asked.redirect_uri, state=asked.state, error="access_denied", error_description=text)
            )
        if fields.get("action") != "allow":
            raise OAuthFault("invalid_request", "The form is damaged. Go back and start again.")
        name = fields.get("name", "")
        user = await self._sign_in.check(name, fields.get("passphrase", ""), address_of(request))
        outcome = "ok" if isinstance(user, User) else "refused"
        shown = await self._sign_in.shown_name(name)
        self._record.add(request, "sign_in", outcome, user=shown, client=asked.client_id)
        if isinstance(user, User):
            return await self._granted(request, opened, user, fields)
        client = await self._clients.find(asked.client_id, address_of(request))
        if user is None:
            return await self._form(client, asked, 403, problem=_WRONG, name=name)
        return await self._locked(client, asked, user, name)

    async def _opened(self, request: Request) -> tuple[dict[str, str], OpenedForm]:
        """Returns the fields and what the form was made for. Raises `OAuthFault` unless it is ours, and sent once."""
        self._check_origin(request)
        fields, now = await form_parameters(request), self._clock.epoch()
        opened = (await self._forms()).open(fields.get("form", ""), request.headers.getlist("cookie"), now)
        if not await self._store.write(grants.use_form, opened.nonce, opened.expires_at, now):
            raise OAuthFault("invalid_request", "The form was sent before. Go back and start again.", 403)
        return fields, opened

    async def _locked(self, client: OAuthClient, asked: AuthorizationRequest, locked: Locked, name: str) -> Response:
        seconds = ceil(locked.seconds)
        text = f"Too many sign-ins have failed. Try again in {seconds} seconds."
        page = await self._form(client, asked, 429, problem=text, name=name)
        page.headers["Retry-After"] = str(seconds)
        return page

    async def _granted(self, request: Request, opened: OpenedForm, user: User, fields: dict[str, str]) -> Response:
        asked, now = opened.request, self._clock.epoch()
        chosen = {scope for scope in asked.scopes if fields.get(f"scope_{scope}") == "yes"} & with_included(user.scopes)
        if not chosen:
            client = await self._clients.find(asked.client_id, address_of(request))
            text = f"Choose something that it may, and that {user.name} may grant: {', '.join(in_order(user.scopes))}."
            return await self._form(client, asked, 403, problem=text, name=user.name)
        code = new_secret(CODE)
        grant = Grant(secrets.token_hex(16), asked.client_id, user.name, frozenset(chosen), asked.resource)
        stored = Code(digest(code), grant, asked.redirect_uri, asked.challenge, now + CODE_SECONDS)
        await self._store.write(grants.create, stored, now)
        self._record.add(request, "consent", "ok", user=user.name, client=asked.client_id, scopes=chosen)
        log.info("%s granted %s to %s for %s", user.name, scope_text(chosen), asked.client_id, asked.resource)
        return _redirect(self._answer(asked.redirect_uri, code=code, state=asked.state))

    def _check_origin(self, request: Request) -> None:
        """Raise `OAuthFault` unless the form was sent from a page of this gateway."""
        site = request.headers.get("sec-fetch-site", "same-origin")
        if request.headers.getlist("origin") != [self._resources.base] or site != "same-origin":
            raise OAuthFault("invalid_request", "The form was not sent from this page.", 403)

    async def _forms(self) -> Forms:
        return Forms(await self._store.key(), is_secure=self._resources.is_secure)

    def _answer(self, redirect_uri: str, **parameters: str | None) -> str:
        """Returns a redirect URI with an answer, which names the issuer (RFC 9207)."""
        return redirects.with_parameters(redirect_uri, **parameters, iss=self._resources.base)


def as_pages(handler: Handler) -> Handler:
    """Returns the handler with its faults as pages, because people see them."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except OAuthFault as fault:
            text = fault.description.rstrip(".") + "."
            return message_page("The request cannot be answered", text, fault.status)
        except OpenbellError as error:
            log.warning("an authorization request failed: %s", error.message)
            return message_page("Not available now", "The store of users and tokens does not answer. Try again.", 503)
        except Exception:
            log.exception("an authorization request failed")
            return message_page("Not available now", "An error occurred. The log of the gateway describes it.", 500)

    return handle


def _redirect_uri(client: OAuthClient, wanted: str | None) -> str:
    """Returns the redirect URI of a request. Raises `OAuthFault`; then nobody may be redirected."""
    if wanted is None and len(client.redirect_uris) == 1:
        return client.redirect_uris[0]
    if wanted is None or not any(redirects.matches(each, wanted) for each in client.redirect_uris):
        raise OAuthFault("invalid_request", "redirect_uri is not one that the client has registered")
    return wanted


def _redirect(url: str) -> Response:
    assert urlsplit(url).scheme in {"http", "https"}
    return RedirectResponse(url, 303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
