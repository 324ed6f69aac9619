"""`gateway.json` in the home: where the gateway of this home is, and the key with which this machine's programs ask it.

`openbell up` writes the file, readable by its owner only, and removes it at its end. The key is valid while that process
lives, which keeps its hash alone. Both sides sign each request's id with it and never send it: a program that takes the
port of a killed gateway learns nothing and cannot answer in its place. A program uses the gateway only if both would give
the same answers.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from openbell.desk.settings import Settings
from openbell.net.addresses import is_loopback
from openbell.stores.registry import all_backends

NAME = "gateway.json"
IDENTITY = "x-openbell-gateway"
"""The header with which the gateway proves that it has written the file: another program may have its port by now."""
PROOF = "x-openbell-proof"
"""The header with which a program proves that it has read the file. The key itself is never sent."""
_LARGEST = 4096
_SERVED = (
    "feed",
    "as_of",
    "replay_speed",
    "sim_seed",
    "stale_after",
    *(name for each in all_backends() for name in each.place),
    "options",
)
"""The settings on which quotes depend."""


@dataclass(frozen=True, slots=True)
class GatewayFile:
    """The content of the file."""

    url: str
    key: str
    serves: str
    """See `fingerprint`."""

    @property
    def digest(self) -> bytes:
        """The hash of the key, with which both sides sign. It needs no salt: the key is random."""
        return hashlib.sha256(self.key.encode()).digest()

    def proof(self, request_id: str) -> dict[str, str]:
        """Returns the header of a request with this id."""
        return {PROOF: signed(self.digest, PROOF, request_id)}

    def has_sent(self, request_id: str, identity: str | None) -> bool:
        """Returns True if the gateway of this file has answered the request with this id."""
        return hmac.compare_digest(signed(self.digest, IDENTITY, request_id), identity or "")


def signed(digest: bytes, header: str, request_id: str) -> str:
    """Returns the value of a header that proves the knowledge of the key, for one request."""
    return hmac.new(digest, f"{header} {request_id}".encode(), hashlib.sha256).hexdigest()


def fingerprint(settings: Settings) -> str:
    """Returns a text that is equal for desks with the same quotes."""
    values = [(name, getattr(settings, name)) for name in _SERVED]
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def describe(settings: Settings, port: int) -> GatewayFile | None:
    """Returns the file of a gateway at a port; None if this machine's programs cannot reach it as a local one."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(settings.host, settings.host)  # noqa: S104
    if settings.read_only or not is_loopback(host):
        return None
    shown = f"[{host}]" if ":" in host else host
    return GatewayFile(f"http://{shown}:{port}", secrets.token_urlsafe(32), fingerprint(settings))


def write(home: Path, content: GatewayFile) -> None:
    """Write the file in one step, in place of the one of another gateway. Raises `OSError`."""
    home.mkdir(parents=True, exist_ok=True)
    made = home / f".{NAME}.{os.getpid()}"
    made.unlink(missing_ok=True)
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(content), file)
    made.replace(home / NAME)


def remove(home: Path, content: GatewayFile) -> None:
    """Remove the file, unless another gateway has replaced it."""
    if read(home) == content:
        with suppress(OSError):
            (home / NAME).unlink()


def read(home: Path) -> GatewayFile | None:
    """Returns the content of the file; None if there is none that its owner's gateway can have written."""
    try:
        with os.fdopen(os.open(home / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode) or state.st_mode & 0o077 or state.st_uid != os.geteuid():
                return None
            content = json.loads(file.read(_LARGEST))
        url, key, serves = (str(content[name]) for name in ("url", "key", "serves"))
        parts = urlsplit(url)
        is_local = parts.scheme == "http" and is_loopback(parts.hostname or "") and bool(parts.port) and not parts.path
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return GatewayFile(url, key, serves) if is_local and key.isascii() and key.isprintable() else None
