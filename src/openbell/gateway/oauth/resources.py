"""The URLs for which tokens are issued (RFC 8707): each endpoint, or the whole gateway."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from openbell.market.errors import SettingsError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PORTS = {"http": 80, "https": 443}


class Resources:
    """The gateway's own URL, which is also the issuer of its tokens, and those of its endpoints."""

    def __init__(self, base_url: str, paths: Iterable[str]) -> None:
        """`base_url` is where clients reach the gateway: https, or http on this machine, without a path.

        `paths` are those of the endpoints, such as /mcp. Raises `SettingsError`.
        """
        base, parts = canonical(base_url), urlsplit(base_url)
        if base is None or parts.path.strip("/"):
            raise SettingsError(f"{base_url!r} is not the URL of a gateway: use https://HOST[:PORT] without a path")
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise SettingsError(f"{base_url}: tokens are only sent over https, or to this machine: use https://HOST")
        self.base = base
        self.endpoints = tuple(f"{base}{path}" for path in paths)
        self._canonical = frozenset({base, *self.endpoints})

    @property
    def is_secure(self) -> bool:
        """True if clients reach the gateway over https."""
        return self.base.startswith("https:")

    def known(self, resource: str) -> str | None:
        """Returns the canonical form of a resource of this gateway; None if it is not one."""
        if resource in self._canonical:
            return resource
        found = canonical(resource)
        if found is not None and found not in self._canonical:
            found = as_reached(found, urlsplit(self.base).netloc)  # localhost and 127.0.0.1 are the same machine
        return found if found in self._canonical else None

    def covers(self, granted: str, resource: str) -> bool:
        """Returns True if a token for `granted` is valid for a resource: the same, or any if it is for the gateway."""
        known = self.known(resource)
        return known is not None and granted in {self.base, known}


def canonical(url: str) -> str | None:
    """Returns an http or https URL in lower case, without a default port and a slash at the end.

    Returns None if it is not such a URL, or has a user, a query or a fragment.
    """
    if not url.isascii() or not url.isprintable() or " " in url or {"?", "#", "@", "\\"} & set(url):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not host:
        return None
    shown = f"[{host}]" if ":" in host else host
    place = shown if port in {None, _PORTS[parts.scheme]} else f"{shown}:{port}"
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


def as_reached(url: str, host: str) -> str:
    """Returns a URL of this machine with the name in a Host header, if that is another name of this machine and port.

    Clients compare the resource in the metadata with the URL that they were given, which may say localhost.
    """
    parts = urlsplit(url)
    try:
        reached = urlsplit(f"http://{host.lower()}")
        same = parts.scheme == "http" and {parts.hostname, reached.hostname} <= LOOPBACK and parts.port == reached.port
        same = same and reached.username is None
    except ValueError:
        return url
    return parts._replace(netloc=reached.netloc).geturl() if same else url


def metadata_url(resource: str) -> str:
    """Returns where the metadata of a resource is (RFC 9728): the well-known path comes before the resource's own."""
    parts = urlsplit(resource)
    return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path.rstrip('/')}"


def challenge(resource: str, error: str | None = None, scope: str | None = None, host: str = "") -> str:
    """Returns the value of WWW-Authenticate that leads a client to the authorization server (RFC 6750, RFC 9728).

    `host` is the Host header of the request.
    """
    fields = {"error": error, "scope": scope, "resource_metadata": metadata_url(as_reached(resource, host))}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in fields.items() if value is not None)
