"""What a client says about itself, in a registration request or a metadata document (RFC 7591)."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

from openbell.gateway.oauth import redirects
from openbell.gateway.oauth.requests import OAuthFault

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
