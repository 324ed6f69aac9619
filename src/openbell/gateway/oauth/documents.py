"""What a client says about itself when it registers, or in a document whose URL is its id (client-id metadata documents).

The document is fetched from an address that a stranger has chosen, so everything about it is bounded: the form of the URL,
the time and size of the response (by `DocumentClient`, which also refuses private networks and redirects), how many are
fetched each minute, and how soon a failed one is tried again.
"""

from __future__ import annotations

import json
import logging
import re
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol
from urllib.parse import urlsplit

from openbell.gateway.guard.limits import CallLimits
from openbell.gateway.oauth import redirects
from openbell.gateway.oauth.requests import OAuthFault
from openbell.market.clock import Clock
from openbell.market.errors import OpenbellError
from openbell.net.rates import Rate
from openbell.stores.access import clients
from openbell.stores.access.clients import DOCUMENT, OAuthClient
from openbell.stores.access.store import AccessStore

CODE_GRANT = "authorization_code"
REFRESH_GRANT = "refresh_token"
AUTH_METHODS = ("none", "client_secret_post", "client_secret_basic")
_LONGEST_NAME = 80
_MOST_REDIRECTS = 10
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are not seen, or change the direction of others."""


@dataclass(frozen=True, slots=True)
class Description:
    """A client's name, where it wants its users to be sent, and what it can do."""

    name: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    auth_method: str


def read_description(data: Any, auth_method: str, *, skip_bad_redirects: bool = False) -> Description:
    """Returns the description in a JSON value. Raises `OAuthFault`.

    `auth_method` is the one of clients that name none. `skip_bad_redirects`: leave out URIs that a client may not have, as
    long as one is left.
    """
    if not isinstance(data, dict):
        raise _bad("the metadata must be a JSON object")
    grant_types = _texts(data, "grant_types", (CODE_GRANT, REFRESH_GRANT))
    if CODE_GRANT not in grant_types:
        raise _bad(f"grant_types must contain {CODE_GRANT}")
    if "code" not in _texts(data, "response_types", ("code",)):
        raise _bad("response_types must contain code")
    method = data.get("token_endpoint_auth_method") or auth_method
    if method not in AUTH_METHODS:
        raise _bad(f"token_endpoint_auth_method must be one of {', '.join(AUTH_METHODS)}")
    supported = tuple(each for each in (CODE_GRANT, REFRESH_GRANT) if each in grant_types)
    uris = _redirect_uris(data, skip_bad=skip_bad_redirects)
    return Description(_name(data.get("client_name")), uris, supported, method)


def _name(name: Any) -> str:
    if name is None or name == "":
        return ""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise _bad(f"client_name must be a text of at most {_LONGEST_NAME} characters")
    if any(unicodedata.category(character) in _UNSEEN for character in name):
        raise _bad("client_name has characters that are not seen")
    return " ".join(name.split())


def _redirect_uris(data: dict[str, Any], *, skip_bad: bool) -> tuple[str, ...]:
    uris = _texts(data, "redirect_uris", ())
    if not 1 <= len(uris) <= _MOST_REDIRECTS:
        raise OAuthFault("invalid_redirect_uri", f"redirect_uris must be a list of 1 to {_MOST_REDIRECTS} URIs")
    faults = {uri: fault for uri in uris if (fault := redirects.fault_of(uri))}
    left = tuple(uri for uri in uris if uri not in faults)
    if faults and not (skip_bad and left):
        raise OAuthFault("invalid_redirect_uri", f"a redirect URI cannot be used: {next(iter(faults.values()))}")
    return left


def _texts(data: dict[str, Any], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    found = data.get(name)
    if found is None:
        return default
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise _bad(f"{name} must be a list of texts")
    return tuple(found)


def _bad(description: str) -> OAuthFault:
    return OAuthFault("invalid_client_metadata", description)


log = logging.getLogger(__name__)

MOST_BYTES = 16_384
SECONDS = 5.0
"""Time in which a document must arrive."""
_MOST_STORED = 500
_LONGEST_URL = 512
OF_ADDRESS = Rate(per_minute=6, burst=10)
"""Documents that are fetched for one network address."""
IN_ALL = Rate(per_minute=60, burst=60)
"""Documents that are fetched for all of them, in one process."""
_OF_ADDRESS, _IN_ALL = "documents of an address", "documents"
_RETRY_SECONDS = 30.0
_MOST_FAILURES = 256
_FRESH_SECONDS = (60.0, 3600.0, 86_400.0)
"""For how long a document is used without fetching it again: at least, by default, at most."""
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=(\d{1,9})(?:$|[,\s])", re.IGNORECASE)
_HOST = re.compile(r"([a-z0-9-]+\.)+[a-z][a-z0-9-]*")
"""A name whose last part is not a number: no spelling of an IP address, and not localhost."""
_CHARACTERS = re.compile(r"https://[A-Za-z0-9.-]+(:\d{1,5})?/[A-Za-z0-9._~:/?@!$&'()*+,;=%-]+")


class DocumentResponse(Protocol):
    """A response to an outbound request."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names in any case."""

    @property
    def body(self) -> bytes:
        """The whole body."""


class DocumentClient(Protocol):
    """Sends requests to addresses that others have chosen. Raises an `OpenbellError` if it refuses to, or fails."""

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = ...,
        body: bytes = ...,
        limit: int = ...,
        timeout: float = ...,  # noqa: ASYNC109 - the interface of the implementation
    ) -> DocumentResponse:
        """Send a request and return the response, of at most `limit` bytes within `timeout` seconds."""


class Documents:
    """Fetches client-id metadata documents, and keeps copies of them in the store."""

    def __init__(self, store: AccessStore, outbound: DocumentClient, clock: Clock) -> None:
        self._store = store
        self._outbound = outbound
        self._clock = clock
        self._limits = CallLimits({_OF_ADDRESS: OF_ADDRESS, _IN_ALL: IN_ALL})
        self._failed: dict[str, tuple[float, OAuthFault]] = {}

    async def client(self, url: str, address: str) -> OAuthClient:
        """Returns the client that a document describes, which is fetched for an address. Raises `OAuthFault`."""
        known = await self._store.read(clients.find, url)
        now = self._clock.epoch()
        if known is not None and known.fresh_until is not None and now < known.fresh_until:
            return known
        until, fault = self._failed.get(url, (0.0, None))
        if fault is not None and time.monotonic() < until:
            raise fault
        try:
            self._count(address)
        except OAuthFault:
            if known is not None:  # others use up what may be fetched: a user of this client need not notice
                return known
            raise
        try:
            client = await self._fetch(url, now)
        except OAuthFault as failure:
            if len(self._failed) >= _MOST_FAILURES:
                self._failed.clear()
            self._failed[url] = (time.monotonic() + _RETRY_SECONDS, failure)
            raise
        self._failed.pop(url, None)
        return client

    async def _fetch(self, url: str, now: float) -> OAuthClient:
        if not is_document_url(url):
            raise OAuthFault("invalid_client", "client_id is not the URL of a metadata document")
        try:
            accept = {"Accept": "application/json"}
            answer = await self._outbound.request("GET", url, headers=accept, limit=MOST_BYTES, timeout=SECONDS)
        except (OpenbellError, OSError) as error:
            log.info("no client metadata from %s: %s", url, type(error).__name__)
            raise OAuthFault("invalid_client", "the metadata document of the client cannot be fetched") from None
        client = _read(url, answer, now)

        if not await self._store.write(clients.put_within, client, _MOST_STORED, now):
            raise OAuthFault("temporarily_unavailable", "too many clients: try again later", 503)
        return client

    def _count(self, address: str) -> None:
        """Raise `OAuthFault` if too many documents were fetched for an address, or in all."""
        wait, status = self._limits.take(address, _OF_ADDRESS), 429
        if wait is None:
            wait, status = self._limits.take("", _IN_ALL), 503
        if wait is not None:
            text = "too many metadata documents: try again in a minute"
            raise OAuthFault("temporarily_unavailable", text, status, Retry_After=str(ceil(wait)))


def is_document_url(client_id: str) -> bool:
    """Returns True if a client id is an https URL with the name of a host and a path, and nothing that hides its meaning."""
    if len(client_id) > _LONGEST_URL or not _CHARACTERS.fullmatch(client_id):
        return False
    parts = urlsplit(client_id)
    try:
        if not parts.port and parts.port is not None:
            return False
    except ValueError:
        return False
    segments = re.sub("%2e", ".", parts.path, flags=re.IGNORECASE).split("/")
    return _HOST.fullmatch(parts.hostname or "") is not None and not {".", ".."} & set(segments)


def _read(url: str, answer: DocumentResponse, now: float) -> OAuthClient:
    """Returns the client that a response describes. Raises `OAuthFault`."""
    headers = {name.lower(): value for name, value in answer.headers.items()}
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.status != 200 or len(answer.body) > MOST_BYTES:
        raise OAuthFault("invalid_client", "the metadata document of the client is not there")
    if kind != "application/json" and not re.fullmatch(r"application/[\w.+-]+\+json", kind):
        raise OAuthFault("invalid_client", "the metadata document of the client is not JSON")
    try:
        data = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise OAuthFault("invalid_client", "the metadata document of the client is not JSON") from None
    found = read_description(data, "none", skip_bad_redirects=True)
    if data.get("client_id") != url:
        raise OAuthFault("invalid_client", "the metadata document names another client_id than its own URL")
    if found.auth_method != "none" or "client_secret" in data:
        raise OAuthFault("invalid_client", "a client with a metadata document must use the method none")
    least, default, most = _FRESH_SECONDS
    age = _MAX_AGE.search(headers.get("cache-control", ""))
    fresh = min(most, max(least, float(age[1]))) if age else default
    uris, grant_types = found.redirect_uris, found.grant_types
    return OAuthClient(url, DOCUMENT, found.name, uris, grant_types, created_at=now, fresh_until=now + fresh)
