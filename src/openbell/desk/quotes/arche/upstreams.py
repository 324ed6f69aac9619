"""Which quotes API the server `arche` asks: one that the settings name, the gateway of this home, or this process."""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from openbell.desk.quotes.arche import gateway_file
from openbell.desk.quotes.arche.errors import UpstreamTooLarge, UpstreamUnreachable
from openbell.desk.quotes.arche.gateway_file import GatewayFile, fingerprint
from openbell.desk.quotes.arche.local import LocalParts, LocalUpstream
from openbell.desk.quotes.arche.requests import HEALTH, TRUTH, ArcheResponse, Params
from openbell.desk.settings import Settings
from openbell.market.errors import OpenbellError, Refused
from openbell.net.http import HttpClient, HttpFailed, HttpFault, RequestBounds

log = logging.getLogger(__name__)

_DATA = ("note", "data", "feed", "as_of", "made_of", "age_s", "session")
"""The fields of the truth header that are about data. The others are about the caller."""
_SHARE = 0.95
"""The part of a call's timeout that a request may take; more than `local.SHARE`, so that the gateway's error arrives."""
_PROOF_SECONDS = 1.0
"""How long a gateway may take to prove that it has written its file: a program that has taken its port may never answer."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
Sign = Callable[[str], Mapping[str, str]]
"""Returns headers that prove who sends the request with an id."""
LARGEST = 2**20
"""Bytes of a body. A page of 200 bars has about 45,000."""


class Arche:
    """The quotes API. `local` is the one of this process."""

    def __init__(self, settings: Settings, local: LocalParts) -> None:
        self._settings = settings
        self.local = LocalUpstream(local)
        self.is_gateway = False
        """True in the process of the gateway, which needs no HTTP to ask itself."""
        self._gateways: dict[GatewayFile, HttpUpstream] = {}
        self._dead: GatewayFile | None = None
        """A file whose gateway has ended."""

    @cached_property
    def _remote(self) -> HttpUpstream:
        settings = self._settings
        most, limit = settings.pool_arche_timeout, settings.timeout * _SHARE
        answer = min(most, limit) if limit else most
        return HttpUpstream(settings.arche_url, settings.arche_key, connect=settings.pool_arche_connect, answer=answer)

    async def get(self, path: str, params: Params, request_id: str) -> ArcheResponse:
        """Returns the response of the chosen API. Raises `Refused`, `UpstreamUnreachable` and `UpstreamTooLarge`."""
        if self._settings.arche_url:
            if self._settings.other_clock:
                raise Refused(
                    "OPENBELL_ARCHE_URL answers as of now, and this desk has a clock of its own: leave out one"
                )
            return await self._remote.get(path, params, request_id)
        found = await self._from_gateway(path, params, request_id)
        return found or await self.local.get(path, params, request_id)

    async def _from_gateway(self, path: str, params: Params, request_id: str) -> ArcheResponse | None:
        """Returns the response of this home's gateway; None if none runs that has the same answers."""
        # The clock of a replay begins with its process: another process is at another time. A gateway writes what it
        # fetches, and a line of its audit log: a read-only desk must not make it.
        if self.is_gateway or self._settings.replay_speed or self._settings.read_only:
            return None
        file = gateway_file.read(self._settings.home)
        if file is None or file == self._dead or file.serves != fingerprint(self._settings):
            return None
        try:
            found = await (await self._upstream_of(file)).get(path, params, request_id)
            _check_identity(found, request_id, file)
        except (UpstreamUnreachable, UpstreamTooLarge) as error:
            log.info("the gateway of this home does not answer (%s): this process does", error)
            self._dead = file
            return None
        return replace(found, truth=_truth_of(found.headers))

    async def _upstream_of(self, file: GatewayFile) -> HttpUpstream:
        """Returns the client of a gateway that has proved itself. Raises `UpstreamUnreachable` and `UpstreamTooLarge`.

        Clients of earlier gateways are closed at the end, because calls may still use them.
        """
        if file not in self._gateways:
            probe = HttpUpstream(file.url, connect=_PROOF_SECONDS, answer=_PROOF_SECONDS, sign=file.proof)
            request_id = secrets.token_hex(12)
            try:
                _check_identity(await probe.get(HEALTH, [], request_id), request_id, file)
            finally:
                await probe.close()
            answer = self._settings.timeout * _SHARE or self._settings.pool_arche_timeout
            self._gateways[file] = HttpUpstream(file.url, connect=_PROOF_SECONDS, answer=answer, sign=file.proof)
        return self._gateways[file]

    async def close(self) -> None:
        """Close every connection."""
        for upstream in self._gateways.values():
            await upstream.close()
        if "_remote" in self.__dict__:
            await self._remote.close()


def _check_identity(found: ArcheResponse, request_id: str, file: GatewayFile) -> None:
    """Raises `UpstreamUnreachable` unless the gateway of a file has answered."""
    if not file.has_sent(request_id, found.headers.get(gateway_file.IDENTITY)):
        raise UpstreamUnreachable("another program has its port")


def _truth_of(headers: Mapping[str, str]) -> dict[str, Any] | None:
    """Returns the truth header of the gateway's response, if it has one."""
    try:
        found = json.loads(headers.get(TRUTH, "null"))
    except ValueError:
        return None
    return {name: found[name] for name in _DATA if name in found} if isinstance(found, dict) else None


class HttpUpstream:
    """Implements `port.Upstream` with an HTTP client."""

    def __init__(
        self, url: str, key: str = "", *, connect: float = 3.0, answer: float = 8.0, sign: Sign | None = None
    ) -> None:
        """`connect` and `answer` are seconds, `answer` those of the whole exchange. `sign` returns headers of a request."""
        self._sign = sign
        self._key = key
        headers = {"Accept": "application/json"} | ({"X-Api-Key": key} if key else {})
        self._http = HttpClient(url, headers, RequestBounds(answer, connect=connect, largest=LARGEST))
        self.url = self._http.url

    async def get(self, path: str, params: Params, request_id: str) -> ArcheResponse:
        """See the port."""
        signature = {} if self._sign is None else self._sign(request_id)
        try:
            response = await self._http.send(
                "GET", path, params=list(params), headers={"X-Request-ID": request_id, **signature}
            )
        except HttpFailed as error:
            raise self._failure(error) from None
        headers = dict(response.headers)
        theirs = headers.get("x-request-id", "")
        if not _ID.fullmatch(theirs) or (self._key and self._key in theirs):
            headers["x-request-id"] = request_id
        return ArcheResponse(response.status, headers, response.body)

    def _failure(self, error: HttpFailed) -> OpenbellError:
        """Returns the error without texts that the other side can choose, and without the request's headers."""
        if error.fault is HttpFault.LARGE_BODY and error.status is not None:
            return UpstreamTooLarge(f"the response has more than {LARGEST:,} bytes", error.status)
        if error.fault is HttpFault.LATE:
            return UpstreamUnreachable(f"{self.url} did not answer in {self._http.bounds.whole:g} s")
        causes = {
            HttpFault.UNREACHABLE: "the connection was refused or could not be made",
            HttpFault.CUT: "the connection ended before the response was complete",
        }
        return UpstreamUnreachable(f"{self.url}: {causes.get(error.fault, f'the request failed ({error})')}")

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()
