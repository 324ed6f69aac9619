"""Which files of a home a backup holds, and `manifest.json`, which names each of them with its size and SHA-256.

The manifest is written last: a folder without it is unfinished.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from openbell.desk.orders.halt_file import HALT_FILE
from openbell.desk.settings.access import FILE as ACCESS
from openbell.market.errors import StoreError
from openbell.stores.registry import StoreBackend, all_backends

_SEED = re.compile(r"seed--?\d{1,18}")
_BAR_FOLDERS = " | ".join(re.escape(each.folders).replace(r"\*", "[^/]+") for each in all_backends())
_MARKET_FILE = re.compile(
    rf"""
    (?: simulated/ (?: {_SEED.pattern}/ )? )?
    (?: records\.sqlite | ledger (?: -[^/]+ )? \.head
      | (?: {_BAR_FOLDERS} )/ (?: buffer\.sqlite | [^/]+/[^/]+/[^/]+\.parquet ) )
    """,
    re.VERBOSE,
)
PLAIN = ("watchlist.txt", "openbell.toml", HALT_FILE)
"""Files of the home that are copied as they are."""
WEBHOOKS = ("webhooks", "deliveries", "received")
"""The tables that are left out: a restored desk must not send or accept in the name of the running one."""
INCLUDED = (
    "records of every market (orders, fills, alerts, decisions, strategies) and the heads of their ledgers",
    "bars of every market (files and buffer) with their coverage",
    f"watchlist.txt, openbell.toml (with the passwords and keys that are in it), {ACCESS} (users, hashes of tokens)",
)
EXCLUDED = (
    "scenarios",
    "webhooks",
    "pictures and caches",
    "audit.log",
    "files that were set aside",
    "environment variables",
)
MANIFEST = "manifest.json"
FORMAT = 1
_CHUNK = 1 << 20
_LARGEST = 1 << 28


@dataclass(frozen=True, slots=True)
class Market:
    """The folder of one market in a home: the real one, or a seed of the simulator."""

    home: Path
    folder: Path

    @property
    def name(self) -> str:
        """Its path in the home; `.` for the real market."""
        return self.folder.relative_to(self.home).as_posix()

    @property
    def records(self) -> Path:
        """The database of its records."""
        return self.folder / "records.sqlite"

    @property
    def bar_folders(self) -> list[Path]:
        """The folders that have a buffer of bars."""
        return [folder for each in all_backends() for folder in self.folders_of(each)]

    def folders_of(self, backend: type[StoreBackend]) -> list[Path]:
        """Those of one kind of store."""
        return [path.parent for path in sorted(self.folder.glob(f"{backend.folders}/buffer.sqlite"))]


def markets_of(home: Path) -> list[Market]:
    """The markets of a home that have a folder."""
    simulated = home / "simulated"
    seeds = sorted(each for each in simulated.glob("seed-*") if _SEED.fullmatch(each.name) and each.is_dir())
    return [Market(home, each) for each in (home, simulated, *seeds) if each.is_dir()]


def bar_files(folder: Path) -> Iterator[Path]:
    """The month files of a folder of bars."""
    yield from sorted(folder.glob("*/*/*.parquet"))


def belongs_to_home(path: str) -> bool:
    """Returns True if a backup can hold a file of this path in the home."""
    return path in (*PLAIN, ACCESS) or _MARKET_FILE.fullmatch(path) is not None


def databases_of(home: Path) -> list[Path]:
    """Every database of a home that its processes keep open."""
    found = [home / ACCESS]
    for market in markets_of(home):
        found += [market.records, *(each / "buffer.sqlite" for each in market.bar_folders)]
    return [each for each in found if each.exists()]


@dataclass(frozen=True, slots=True)
class Copied:
    """One file of a backup."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds."""

    made_at: float
    version: str
    """Of the Openbell that made it."""
    heads: Mapping[str, str]
    """The head of each ledger, as `openbell verify` prints it, by the folder of its market in the home."""
    files: Mapping[str, Copied]
    """By path in the home."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.files.values())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest durably. Raises `OSError`."""
    body: dict[str, Any] = {
        "format": FORMAT,
        "made_at": manifest.made_at,
        "openbell": manifest.version,
        "heads": dict(manifest.heads),
        "files": {path: {"size": each.size, "sha256": each.sha256} for path, each in manifest.files.items()},
    }
    text = json.dumps({**body, "sha256": _digest(body)}, indent=1, sort_keys=True)
    (folder / MANIFEST).touch(0o600)
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_manifest(folder: Path) -> Manifest:
    """Returns the manifest of a backup. Raises `StoreError` if the folder is no finished backup of this format."""
    try:
        if (folder / MANIFEST).stat().st_size > _LARGEST:
            raise ValueError("too large")
        body = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        kind, digest = body["format"], body.pop("sha256", "")
    except FileNotFoundError:
        hint = " (a backup that was interrupted has none)" if folder.is_dir() else ""
        raise StoreError(f"{folder} is not a backup: it has no {MANIFEST}{hint}") from None
    except OSError as error:
        raise StoreError(f"cannot read {folder / MANIFEST}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StoreError(f"{folder / MANIFEST} is damaged: this backup cannot be restored") from None
    if kind != FORMAT:
        raise StoreError(
            f"{folder} has format {kind!r:.40} and this Openbell restores format {FORMAT}: restore it with the Openbell "
            "that made it"
        )
    if digest != _digest(body):
        raise StoreError(f"{folder / MANIFEST} is damaged: this backup cannot be restored")
    try:
        files = {path: Copied(each["size"], each["sha256"]) for path, each in body["files"].items()}
        found = Manifest(float(body["made_at"]), str(body["openbell"]), dict(body["heads"]), files)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{folder / MANIFEST} is no manifest of a backup: it cannot be restored") from None
    for path in files:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or path == MANIFEST:
            raise StoreError(f"{folder / MANIFEST} names {path!r:.100}, which is no file of a home: it is not restored")
    return found


def copy_file(source: Path, target: Path, advance: Callable[[int], None]) -> Copied:
    """Copy a file durably, with its time. Returns what was written. Raises `OSError`."""
    digest, size = hashlib.sha256(), 0
    with ExitStack() as stack:
        opened = stack.enter_context(source.open("rb"))
        found = os.fstat(opened.fileno())
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.touch(0o600)
        sink = stack.enter_context(target.open("wb"))
        while some := opened.read(_CHUNK):
            digest.update(some)
            sink.write(some)
            size += len(some)
            advance(len(some))
        sink.flush()
        os.utime(sink.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        os.fsync(sink.fileno())
    return Copied(size, digest.hexdigest())


def describe(path: Path) -> Copied:
    """Size and SHA-256 of a file. Raises `OSError`."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as opened:
        while some := opened.read(_CHUNK):
            digest.update(some)
            size += len(some)
    return Copied(size, digest.hexdigest())


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
