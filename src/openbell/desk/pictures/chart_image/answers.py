"""Responses of the vendor: which error one is, and what a picture or a stored picture of it is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from openbell.desk.pictures.chart_image.errors import (
    ConfigRefused,
    KeyRefused,
    PlanRefused,
    RateLimited,
    VendorError,
    VendorFailed,
    VendorRefused,
)
from openbell.desk.pictures.chart_image.words import clean, moment_of, parse_json, problems_of, words_of
from openbell.desk.quotes.arche.requests import TRUTH
from openbell.net import rates
from openbell.net.addresses import is_loopback
from openbell.net.response import Response

RETRIED = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_DEFAULT_WAIT = 60
"""Seconds to wait after a 429 that does not say how long."""
_LONGEST_WAIT = 31 * 86_400
_LONGEST_URL = 2048
_PLAUSIBLE = timedelta(days=3650)
_STATED = ("note", "data", "feed", "as_of", "made_of", "session")
_LONGEST_HEADER = 4096
_MAGIC = {"png": (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"), "jpeg": (b"\xff\xd8\xff", b"\xff\xd9")}
"""How the files of each format begin and end."""
_REMAINING = ("x-ratelimit-remaining-day", "x-ratelimit-remaining", "ratelimit-remaining")


class Failure(NamedTuple):
    """A response that is an error, and the seconds of its Retry-After; None if it has none."""

    error: VendorError
    wait: float | None


@dataclass(frozen=True, slots=True)
class PictureAnswer:
    """A picture. `format` is what it is, whatever was asked for."""

    data: bytes
    format: str
    status: int
    remaining: int | None
    """Requests that are left of the day."""
    notes: tuple[str, ...] = ()
    stated: Mapping[str, Any] | None = None
    """What another desk says about its picture; None for the vendor's."""


@dataclass(frozen=True, slots=True)
class StoredPictureAnswer:
    """A picture at an address of the vendor."""

    url: str
    format: str
    expires_at: datetime
    created_at: datetime | None
    size: int | None
    etag: str | None
    status: int
    remaining: int | None
    stated: Mapping[str, Any] | None = None
    """What another desk says about its picture; None for the vendor's."""


def failure_of(response: Response, key: str, now: float) -> Failure | None:
    """Returns the error of a response at a time in epoch seconds; None if it is a success."""
    if 200 <= response.status < 300:
        return None
    wait = rates.retry_after({"date": format_datetime(datetime.fromtimestamp(now, UTC)), **response.headers})
    wait = None if wait is None else min(wait, _LONGEST_WAIT)
    return Failure(_error(response, key, now, None if wait is None else math.ceil(wait)), wait)


def _error(response: Response, key: str, now: float, wait: int | None) -> VendorError:
    status, value = response.status, parse_json(response.body)
    words = words_of(value, key) or (
        clean(response.body[:65_536].decode("utf-8", "replace"), key) if _is_text(response) else ""
    )
    if status == 401:
        return KeyRefused(status)
    if status == 403:
        return _forbidden(words)
    if status in {400, 422}:
        return ConfigRefused(problems_of(words if value is None else value, key), status=status)
    if status == 429:
        return _limited(words, wait, now)
    said = f": {words}" if words else ""
    if status >= 500:
        message = f"the vendor failed with HTTP {status}{said}"
        return VendorFailed(message, status=status, retry_after=wait, transient=status in RETRIED)
    if 300 <= status < 400:
        message = (
            f"the vendor answered with a redirect (HTTP {status}), which is not followed; check OPENBELL_CHART_IMG_URL"
        )
        return VendorFailed(message, status=status)
    return VendorRefused(f"the vendor refused the request with HTTP {status}{said}", status=status)


def _is_text(response: Response) -> bool:
    """Returns True if an error is a plain text. The text of an HTML page says nothing about the request."""
    return response.kind == "text/plain" and response.body.lstrip()[:1] != b"<"


def _forbidden(words: str) -> VendorError:
    """Returns the error of a 403, which is about the plan or about the key."""
    lowered = words.lower()
    if any(each in lowered for each in ("exceed", "limit", "plan", "upgrade", "watermark")):
        return PlanRefused(words, status=403)
    if not words or any(each in lowered for each in ("key", "forbidden", "auth", "token", "denied")):
        return KeyRefused(403)
    return VendorRefused(words, status=403)


def _limited(words: str, wait: int | None, now: float) -> RateLimited:
    """Returns the error of a 429, which is about the rate or about the quota of a day."""
    lowered = words.lower()
    quota = "rate limit" not in lowered and any(each in lowered for each in ("limit exceeded", "quota", "daily"))
    if quota:
        reason = f"The vendor says: {words}"
        return RateLimited(until_midnight(now) if wait is None else wait, reason, status=429)
    return RateLimited(_DEFAULT_WAIT if wait is None else max(1, wait), status=429, transient=True)


def until_midnight(now: float) -> int:
    """Returns the seconds until the next day of UTC begins, at least 1."""
    return max(1, math.ceil(86_400 - now % 86_400))


def remaining_of(headers: Mapping[str, str]) -> int | None:
    """Returns how many requests are left by the vendor's headers; None if it does not say."""
    found = (headers.get(name, "").strip() for name in _REMAINING)
    return next((int(text) for text in found if text.isascii() and text.isdigit() and len(text) < 10), None)


def picture_of(response: Response, asked: str, key: str, remaining: int | None) -> PictureAnswer:
    """Returns the picture of a response. Raises `VendorFailed` if it is none, or not a whole one."""
    if not response.kind.startswith("image/"):
        words = words_of(parse_json(response.body), key)
        sent = f": {words}" if words else f" but {clean(response.kind, key, 60) or 'something else'}"
        raise VendorFailed(f"the vendor sent no picture{sent}", status=response.status)
    for name, (begin, end) in _MAGIC.items():
        if response.body.startswith(begin):
            if not response.body.rstrip(b"\0\r\n").endswith(end):
                raise VendorFailed("the vendor sent only a part of a picture; try again", status=response.status)
            notes = () if name == asked else (f"{asked} was asked for, and the vendor sent {name}",)
            return PictureAnswer(response.body, name, response.status, remaining, notes, stated_of(response, key))
    raise VendorFailed("the vendor sent a picture that is neither PNG nor JPEG", status=response.status)


def stored_of(
    response: Response, asked: str, key: str, remaining: int | None, base: str, until: datetime
) -> StoredPictureAnswer:
    """Returns the stored picture of a response. Raises `VendorFailed` if it is none.

    `base` is the address of the vendor, `until` the time at which its pictures expire if the response does not say so.
    """
    value = parse_json(response.body)
    if not isinstance(value, dict) or not isinstance(value.get("url"), str):
        words = words_of(value, key)
        raise VendorFailed(
            f"the vendor sent no address of a picture{': ' + words if words else ''}", status=response.status
        )
    url = _checked_url(value["url"], key, base, response.status)
    size, etag = value.get("size"), value.get("etag")
    suffix = urlsplit(url).path.rpartition(".")[2].lower()
    return StoredPictureAnswer(
        url=url,
        format={"png": "png", "jpg": "jpeg", "jpeg": "jpeg"}.get(suffix, asked),
        expires_at=_expiry(value, until),
        created_at=_plausible(value.get("createdAt"), until),
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        etag=clean(etag, key, 100) if isinstance(etag, str) else None,
        status=response.status,
        remaining=remaining,
        stated=stated_of(response, key),
    )


def stated_of(response: Response, key: str) -> dict[str, Any] | None:
    """Returns the truth header of another desk that draws in place of the vendor; None if there is none."""
    try:
        found = json.loads(response.headers.get(TRUTH, "null")[:_LONGEST_HEADER])
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    texts = {name: clean(found[name], key) for name in _STATED if isinstance(found.get(name), str)}
    age = found.get("age_s")
    return {**texts, "age_s": age} if isinstance(age, int) and not isinstance(age, bool) else texts


def _expiry(value: dict[str, Any], until: datetime) -> datetime:
    named = (value.get(name) for name in ("expireAt", "expiresAt", "expire"))
    return next((found for each in named if (found := _plausible(each, until)) is not None), until)


def _plausible(value: object, near: datetime) -> datetime | None:
    """Returns a time of the vendor; None if it is none, or years away from another."""
    found = moment_of(value)
    return found if found is not None and abs(found - near) < _PLAUSIBLE else None


def _checked_url(url: str, key: str, base: str, status: int) -> str:
    """Returns an address of a picture. Raises `VendorFailed` if a reader should not be sent there."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise VendorFailed("the vendor sent an address that cannot be read", status=status) from None
    home = urlsplit(base)
    local = home.scheme == "http" and is_loopback(home.hostname or "") and parts.netloc == home.netloc
    if not (parts.scheme == "https" or (parts.scheme == "http" and local)):
        raise VendorFailed("the vendor sent an address without TLS, which is not passed on", status=status)
    printable = url.isascii() and url.isprintable() and " " not in url and len(url) <= _LONGEST_URL
    if not parts.hostname or "@" in parts.netloc or not printable or (key and key.lower() in url.lower()):
        raise VendorFailed("the vendor sent an address that is not passed on", status=status)
    return url
