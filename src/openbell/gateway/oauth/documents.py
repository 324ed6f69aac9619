"""Clients whose id is the URL of a document that describes them (client-id metadata documents).

The document is fetched from an address that a stranger has chosen, so everything about it is bounded: the form of the URL,
the time and size of the response (by `DocumentClient`, which also refuses private networks and redirects), how many are
fetched each minute, and how soon a failed one is tried again.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from math import ceil
from typing import Protocol
from urllib.parse import urlsplit

from openbell.gateway.guard.limits import CallLimits
from openbell.gateway.oauth.descriptions import read_description
from openbell.gateway.oauth.requests import OAuthFault
from openbell.market.clock import Clock
from openbell.market.errors import OpenbellError
from openbell.net.rates import Rate
from openbell.stores.access import clients
from openbell.stores.access.clients import DOCUMENT, OAuthClient
from openbell.stores.access.store import AccessStore

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
