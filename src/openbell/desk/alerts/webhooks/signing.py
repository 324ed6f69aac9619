"""Signatures of webhooks: `t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256 of `SECONDS.BODY` with the webhook's secret."""

from __future__ import annotations

import hmac
from hashlib import sha256

HEADER = "Openbell-Signature"
TOLERANCE = 300
"""Seconds after which a receiver should refuse a signature."""


def sign(secret: str, at: int, body: bytes) -> str:
    """Returns the value of the signature header."""
    return f"t={at},v1={_digest(secret, str(at), body)}"


def verify(secret: str, header: str, body: bytes, now: float) -> bool:
    """Returns True if a body has this signature and was signed within the last five minutes."""
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    stamp, given = parts.get("t", ""), parts.get("v1", "")
    fresh = stamp.isascii() and stamp.isdigit() and len(stamp) < 20 and abs(now - int(stamp)) <= TOLERANCE
    return hmac.compare_digest(_digest(secret, stamp, body).encode(), given.encode()) and fresh


def _digest(secret: str, stamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), stamp.encode() + b"." + body, sha256).hexdigest()
