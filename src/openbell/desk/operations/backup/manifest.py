"""`manifest.json` in a backup: every file with its size and SHA-256.

It is written last: a folder without it is unfinished.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from openbell.market.errors import StoreError

NAME = "manifest.json"
FORMAT = 1
_CHUNK = 1 << 20
_LARGEST = 1 << 28


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


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest durably. Raises `OSError`."""
    body: dict[str, Any] = {
        "format": FORMAT,
        "made_at": manifest.made_at,
        "openbell": manifest.version,
        "heads": dict(manifest.heads),
        "files": {path: {"size": each.size, "sha256": each.sha256} for path, each in manifest.files.items()},
    }
    text = json.dumps({**body, "sha256": _digest(body)}, indent=1, sort_keys=True)
    (folder / NAME).touch(0o600)
    with (folder / NAME).open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(folder: Path) -> Manifest:
    """Returns the manifest of a backup. Raises `StoreError` if the folder is no finished backup of this format."""
    try:
        if (folder / NAME).stat().st_size > _LARGEST:
            raise ValueError("too large")
        body = json.loads((folder / NAME).read_text(encoding="utf-8"))
        kind, digest = body["format"], body.pop("sha256", "")
    except FileNotFoundError:
        hint = " (a backup that was interrupted has none)" if folder.is_dir() else ""
        raise StoreError(f"{folder} is not a backup: it has no {NAME}{hint}") from None
    except OSError as error:
        raise StoreError(f"cannot read {folder / NAME}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StoreError(f"{folder / NAME} is damaged: this backup cannot be restored") from None
    if kind != FORMAT:
        raise StoreError(
            f"{folder} has format {kind!r:.40} and this Openbell restores format {FORMAT}: restore it with the Openbell "
            "that made it"
        )
    if digest != _digest(body):
        raise StoreError(f"{folder / NAME} is damaged: this backup cannot be restored")
    try:
        files = {path: Copied(each["size"], each["sha256"]) for path, each in body["files"].items()}
        found = Manifest(float(body["made_at"]), str(body["openbell"]), dict(body["heads"]), files)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StoreError(f"{folder / NAME} is no manifest of a backup: it cannot be restored") from None
    for path in files:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or path == NAME:
            raise StoreError(f"{folder / NAME} names {path!r:.100}, which is no file of a home: it is not restored")
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
