"""The form in which a user consents, and its pages: plain HTML, no script, nothing from elsewhere.

The token of the form is the authorization request, sealed, so that nothing is stored before a user has consented. The seal
covers a cookie that only the browser has which was shown the form. The store remembers forms that were submitted.

Everything that a client chose is escaped, and its name is isolated, so that it cannot change the text around it.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from html import escape

from starlette.responses import HTMLResponse

from openbell.desk.settings.principals import OPERATOR
from openbell.gateway.oauth import redirects
from openbell.gateway.oauth.requests import OAuthFault
from openbell.gateway.oauth.scopes import SENTENCES, in_order
from openbell.gateway.oauth.secret_texts import base64url
from openbell.market.foreign_text import one_visible_line
from openbell.stores.access.clients import DOCUMENT, OAuthClient

FORM_SECONDS = 600.0
"""Time to fill in the form."""
_NONCE_BYTES = 16
_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}")
STYLE = """
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0;display:flex;justify-content:center;background:Canvas;color:CanvasText}
main{width:100%;max-width:30rem;padding:2rem 1.25rem}
h1{font-size:1.4rem;line-height:1.3;margin:0 0 1rem;overflow-wrap:anywhere}
dl{margin:0 0 1.25rem;display:grid;grid-template-columns:auto 1fr;gap:.35rem 1rem}
dt,.scope span{color:color-mix(in srgb,CanvasText 70%,Canvas)}dd{margin:0;overflow-wrap:anywhere}
fieldset{border:1px solid GrayText;border-radius:.5rem;margin:0 0 1.25rem;padding:.5rem 1rem .75rem}
label{display:block;margin:.5rem 0}
.scope{display:grid;grid-template-columns:auto 1fr;gap:.1rem .6rem;align-items:baseline}
.scope span{grid-column:2}
input[type=text],input[type=password]{box-sizing:border-box;width:100%;font:inherit;padding:.5rem;margin-top:.2rem}
button{font:inherit;padding:.55rem 1.4rem;margin-right:.5rem;border-radius:.5rem;border:1px solid GrayText;cursor:pointer}
button.allow{background:#1a5fb4;border-color:#1a5fb4;color:#fff}
.note,.problem{border-left:.25rem solid #c64600;padding:.25rem .75rem;margin:0 0 1.25rem}
.problem{border-color:#c01c28}
"""
_STYLE_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
_HOSTS = "The name of a host in another alphabet is shown in its technical form (xn--…)."


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A request that was checked: what a client asks a user for."""

    client_id: str
    redirect_uri: str
    scopes: tuple[str, ...]
    resource: str
    challenge: str
    state: str | None


@dataclass(frozen=True, slots=True)
class SealedForm:
    """A new form: the token for its hidden field, and the cookie that belongs to it."""

    token: str
    cookie_name: str
    cookie: str


@dataclass(frozen=True, slots=True)
class OpenedForm:
    """A form that was submitted and is genuine. `nonce` must still be marked as used."""

    request: AuthorizationRequest
    nonce: str
    expires_at: float


class Forms:
    """Seals and opens forms with the key that all gateway processes share."""

    def __init__(self, key: bytes, *, is_secure: bool) -> None:
        """`is_secure`: browsers use https, so that cookies can be bound to this host."""
        self._key = hmac.digest(key, b"consent form", "sha256")
        self._prefix = "__Host-openbell-" if is_secure else "openbell-"

    def seal(self, request: AuthorizationRequest, now: float) -> SealedForm:
        """Returns a form for a request."""
        nonce, cookie = secrets.token_hex(_NONCE_BYTES), secrets.token_urlsafe(32)
        content = {"request": asdict(request), "nonce": nonce, "expires_at": now + FORM_SECONDS}
        payload = base64url(json.dumps(content).encode())
        return SealedForm(f"{payload}.{self._seal(payload, cookie)}", self._prefix + nonce[:16], cookie)

    def open(self, token: str, cookies: Iterable[str], now: float) -> OpenedForm:
        """Returns the form of a token; `cookies` are the Cookie headers of the request.

        Raises `OAuthFault` if it is forged, from another browser, or too old.
        """
        payload, _, seal = token.partition(".")
        try:
            content = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            nonce, expires_at, fields = str(content["nonce"]), float(content["expires_at"]), content["request"]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            raise _again("The form is damaged.") from None
        cookie = _cookie(cookies, self._prefix + nonce[:16])
        if cookie is None or not hmac.compare_digest(self._seal(payload, cookie).encode(), seal.encode()):
            raise _again("The form does not belong to this browser.")
        if now >= expires_at:
            raise _again("The form is too old.")
        request = AuthorizationRequest(**{**fields, "scopes": tuple(fields["scopes"])})
        return OpenedForm(request, nonce, expires_at)

    def _seal(self, payload: str, cookie: str) -> str:
        return base64url(hmac.digest(self._key, f"{cookie}.{payload}".encode(), "sha256"))


def _cookie(headers: Iterable[str], name: str) -> str | None:
    """Returns our own cookie of a name; None if it is missing, twice there, or not one that we have set.

    Python's http.cookies unescapes the values of all cookies first, which takes seconds for a header of 15 kB in some of
    its patch levels (CVE-2024-7592).
    """
    found = [value for header in headers for value in re.findall(rf"(?:^|;) ?{re.escape(name)}=([^;]*)", header)]
    return found[0] if len(found) == 1 and _COOKIE.fullmatch(found[0]) else None


def _again(reason: str) -> OAuthFault:
    return OAuthFault("invalid_request", f"{reason} Go back to the application and start again.", 403)


@dataclass(frozen=True, slots=True)
class ConsentPage:
    """What a consent page shows."""

    client: OAuthClient
    request: AuthorizationRequest
    base: str
    """The URL of the gateway."""
    token: str
    name: str = OPERATOR
    problem: str = ""


def consent_page(consent: ConsentPage, status: int = 200) -> HTMLResponse:
    """Returns the page on which a user signs in and gives or refuses consent."""
    client, request = consent.client, consent.request
    named = one_visible_line(client.name).strip()
    title = f"Allow <bdi>{escape(named or 'a client without a name')}</bdi> to use this desk?"
    everything = request.resource == consent.base
    facts = {
        "Client": f"<bdi>{escape(named or client.id)}</bdi>",
        "Identity": _identity(client),
        "Sends you to": escape(_destination(request.redirect_uri)),
        "Access to": escape(request.resource) + (" (every server of this desk)" if everything else ""),
    }
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
    boxes = "".join(
        f'<label class="scope"><input type="checkbox" name="scope_{scope}" value="yes" checked> <b>{scope}</b>'
        f"<span>{escape(SENTENCES[scope])}</span></label>"
        for scope in in_order(request.scopes)
    )
    problem = f'<p class="problem" role="alert">{escape(consent.problem)}</p>' if consent.problem else ""
    body = f"""<h1>{title}</h1>
{problem}<dl>{rows}</dl>
{_warning(client, request)}<form method="post" action="/authorize/consent" autocomplete="on">
<input type="hidden" name="form" value="{escape(consent.token)}">
<fieldset><legend>It may</legend>{boxes}</fieldset>
<label>Name<input type="text" name="name" value="{escape(consent.name[:64])}" autocomplete="username"
 autocapitalize="none" spellcheck="false" required></label>
<label>Passphrase<input type="password" name="passphrase" autocomplete="current-password" required></label>
<p><button class="allow" name="action" value="allow">Allow</button>
<button name="action" value="deny" formnovalidate>Deny</button></p>
</form>"""
    return _page("Allow access", body, status, redirects.origin_of(request.redirect_uri))


def message_page(title: str, text: str, status: int, link: tuple[str, str] | None = None) -> HTMLResponse:
    """Returns a page with a message, and a link (URL and text) if there is one."""
    shown = f'<p><a href="{escape(link[0])}" rel="noreferrer">{escape(link[1])}</a></p>' if link else ""
    return _page(title, f"<h1>{escape(title)}</h1><p>{escape(text)}</p>{shown}", status)


def _identity(client: OAuthClient) -> str:
    if client.kind == DOCUMENT:
        return f"Verified: described by {escape(client.id)}"
    return "Not verified: the client chose its name itself"


def _destination(uri: str) -> str:
    host = redirects.host_of(uri)
    return f"{host} (a program on your own computer)" if redirects.is_loopback(uri) else host


def _warning(client: OAuthClient, request: AuthorizationRequest) -> str:
    notes = []
    if redirects.is_loopback(request.redirect_uri):
        notes.append("Any program on your computer can use this name. Continue only if you have just started it.")
    elif client.kind != DOCUMENT:
        notes.append("Continue only if you know the host that you are sent to.")
    if "xn--" in redirects.host_of(request.redirect_uri):
        notes.append(_HOSTS)
    return "".join(f'<p class="note">{escape(note)}</p>\n' for note in notes)


def _page(title: str, body: str, status: int, form_target: str = "") -> HTMLResponse:
    html = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · Openbell</title><style>{STYLE}</style></head>
<body><main>{body}</main></body></html>
"""
    # Browsers apply form-action also to the redirect that answers the form.
    target = f"'self' {form_target}" if form_target else "'none'"
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {target}; frame-ancestors 'none'; "
        "base-uri 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        # Not no-referrer: with it, browsers send the form with the origin null.
        "Referrer-Policy": "same-origin",
    }
    return HTMLResponse(html, status, headers=headers)
