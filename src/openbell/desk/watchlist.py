"""The watchlist: a plain text file in the home, one symbol a line; # begins a comment."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from openbell.market.errors import InvalidSymbol, StoreError
from openbell.market.instruments import Instrument, parse

DEFAULT = """\
# One symbol a line. Text after # is a comment.
# Stocks
SPY
QQQ
IWM
AAPL
MSFT
GOOGL
AMZN
META
NVDA
TSLA
BBAI
RIOT
NVDX
SMR
APLD
SOUN
SERV
ACHR
BITQ
UEC

# Crypto
BTC/USD
ETH/USD
"""


@dataclass(frozen=True, slots=True)
class Watchlist:
    """The instruments in the order of the file, and what could not be read."""

    instruments: tuple[Instrument, ...]
    faults: tuple[str, ...] = ()


def parse_watchlist(text: str) -> Watchlist:
    """Read the lines; a bad one costs only itself."""
    found: dict[Instrument, None] = {}
    faults = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        symbol = line.partition("#")[0].strip()
        if not symbol:
            continue
        try:
            found[parse(symbol)] = None
        except InvalidSymbol as error:
            faults.append(f"line {number}: {error.message}")
    return Watchlist(tuple(found), tuple(faults))


class WatchlistFile:
    """The file, read again only when it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        self._list = parse_watchlist(DEFAULT)

    def read(self) -> Watchlist:
        """What is watched now; without a file, the default."""
        try:
            state = self.path.stat()
            seen = (state.st_mtime_ns, state.st_size)
            if seen != self._seen:
                self._list = parse_watchlist(self.path.read_text(encoding="utf-8", errors="replace"))
                self._seen = seen
        except FileNotFoundError:
            self._seen, self._list = None, parse_watchlist(DEFAULT)
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error
        return self._list

    def changed(self) -> bool:
        """Whether the file differs from what `read` last saw."""
        try:
            state = self.path.stat()
        except OSError:
            return self._seen is not None
        return (state.st_mtime_ns, state.st_size) != self._seen

    def create(self) -> None:
        """Write the default for a person to edit, if there is no file yet."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                return
            # Whole or not at all: an empty list would watch nothing, for good.
            beside = self.path.with_name(f".watchlist.{os.getpid()}")
            try:
                beside.write_text(DEFAULT, encoding="utf-8")
                with suppress(FileExistsError):
                    os.link(beside, self.path)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error}") from error
