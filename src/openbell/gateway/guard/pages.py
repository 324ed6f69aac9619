"""Security headers of HTML pages: no scripts, no frames, no caches, no other sites."""

from __future__ import annotations

from openbell.desk.settings import Settings

_CSP = (
    b"default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    b"frame-ancestors 'none'"
)
_ALWAYS = (
    (b"content-security-policy", _CSP),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    # With `no-referrer`, browsers send `Origin: null` with a form, which `Hosts` refuses.
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
)
_HSTS = (b"strict-transport-security", b"max-age=31536000")


def page_headers(settings: Settings) -> tuple[tuple[bytes, bytes], ...]:
    """Returns the headers of pages. Browsers may insist on https only if the public address has it."""
    return (*_ALWAYS, _HSTS) if settings.public_url.startswith("https://") else _ALWAYS
