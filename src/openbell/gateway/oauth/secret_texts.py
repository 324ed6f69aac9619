"""Codes, tokens and client secrets: 32 random bytes behind a prefix that names their kind. Only their hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode

CODE = "obc_"
ACCESS = "oba_"
REFRESH = "obr_"
STATIC = "obs_"
CLIENT_SECRET = "obk_"  # noqa: S105 - a prefix
_FORM = re.compile(r"ob[acrsk]_[A-Za-z0-9_-]{43}")


def new_secret(prefix: str) -> str:
    """Returns a new secret text."""
    return prefix + secrets.token_urlsafe(32)


def is_secret(text: str, prefix: str) -> bool:
    """Returns True if a text has the form of a secret of this kind. Others need not be looked up."""
    return text.startswith(prefix) and _FORM.fullmatch(text) is not None


def digest(text: str) -> str:
    """Returns the hash under which a secret text is stored. It needs no salt: the text is random."""
    return hashlib.sha256(text.encode()).hexdigest()


def derived(key: bytes, prefix: str, text: str) -> str:
    """Returns a secret text that follows from another one and a key: the same each time, and not to be guessed."""
    made = hmac.digest(key, f"{prefix}{text}".encode(), "sha256")
    return prefix + base64url(made)


def base64url(data: bytes) -> str:
    """Returns bytes as base64url without padding."""
    return urlsafe_b64encode(data).decode().rstrip("=")


def equal(one: str, other: str) -> bool:
    """Compares two texts in a time that does not depend on where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())
