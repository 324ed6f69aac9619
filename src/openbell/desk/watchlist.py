"""The watchlist: a plain text file in the home with one symbol per line; # starts a comment."""

from __future__ import annotations

import os
from collections.abc import Iterable
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
        if not self.path.exists():
            self._write(DEFAULT, replace=False)

    def watch(self, symbols: Iterable[str]) -> list[Instrument]:
        """Add symbols, or write a list of these alone if there is no file yet; returns the symbols that are new."""
        wanted = list(dict.fromkeys(map(parse, symbols)))
        if not self.path.exists():
            self._write("".join(f"{each}\n" for each in wanted), replace=False)
            return wanted
        return self.add(str(each) for each in wanted)

    def add(self, symbols: Iterable[str]) -> list[Instrument]:
        """Append the symbols that are not watched yet, and return them. Raises `InvalidSymbol` and `StoreError`."""
        wanted = list(dict.fromkeys(map(parse, symbols)))
        text = self._text()
        known = set(parse_watchlist(text).instruments)
        new = [each for each in wanted if each not in known]
        if new:
            text = text if text.endswith("\n") or not text else f"{text}\n"
            self._write(text + "".join(f"{each}\n" for each in new))
        return new

    def remove(self, symbols: Iterable[str]) -> list[Instrument]:
        """Remove the lines of symbols, and return those that were watched. Raises `InvalidSymbol` and `StoreError`."""
        unwanted = dict.fromkeys(map(parse, symbols))
        text = self._text()
        found = [each for each in unwanted if each in parse_watchlist(text).instruments]
        if found:
            kept = (
                line
                for line in text.splitlines(keepends=True)
                if not set(parse_watchlist(line).instruments) & set(found)
            )
            self._write("".join(kept))
        return found

    def _text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return DEFAULT
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error

    def _write(self, text: str, *, replace: bool = True) -> None:
        """Write the file atomically: a partly written list would be used from then on."""
        beside = self.path.with_name(f".watchlist.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                beside.write_text(text, encoding="utf-8", errors="surrogateescape")
                if replace:
                    beside.replace(self.path)
                else:
                    with suppress(FileExistsError):
                        os.link(beside, self.path)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error}") from error
