"""Which files of a home a backup holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from openbell.desk.orders.halt_file import HALT_FILE
from openbell.desk.settings.access import FILE as ACCESS
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
