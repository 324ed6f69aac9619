"""The watchlist: a plain text file in the home with one symbol per line; # starts a comment."""

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
    """The instruments in the order of the file, and the errors of bad lines."""

    instruments: tuple[Instrument, ...]
    faults: tuple[str, ...] = ()


def parse_watchlist(text: str) -> Watchlist:
    """Returns the watchlist of a text; bad lines are skipped and listed in `faults`."""
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
    """The file; it is parsed again only if it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        self._list = parse_watchlist(DEFAULT)

    def read(self) -> Watchlist:
        """Returns the current watchlist; the default if there is no file. Raises `StoreError`."""
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

    def state(self) -> tuple[int, int] | None:
        """Returns a value that differs after every edit of the file; None if there is no file."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def create(self) -> None:
        """Write the default list, for users to edit, if there is no file yet. Raises `StoreError`."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                return
            # Atomic: a partly written list would be used from then on.
            beside = self.path.with_name(f".watchlist.{os.getpid()}")
            try:
                beside.write_text(DEFAULT, encoding="utf-8")
                with suppress(FileExistsError):
                    os.link(beside, self.path)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error}") from error
