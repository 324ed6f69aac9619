"""The watchlist: a plain text file in the home with one symbol per line; # starts a comment.

The line `@default` stands for the default symbols of the feed, so that a list still fits after a change of feed. The line
`-AAPL` leaves AAPL out, whichever line or import adds it. Without a file the default symbols are watched. The default
symbols of a feed that only reads the store are the instruments that have stored bars.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from openbell.market.errors import InvalidSymbol, StoreError
from openbell.market.instruments import Instrument, parse
from openbell.stores.threads import Threads, own_context

if TYPE_CHECKING:
    from openbell.stores.port import BarStore

DEFAULT = "@default"
"""The line that stands for the default symbols of the feed."""
IMPORTED = "imported"
"""The comment of a line that an import has added: at a time before its first bar, the symbol is not watched."""
NEW_FILE = f"""\
# One symbol a line. Text after # is a comment.
# {DEFAULT} stands for the symbols of the feed; -SYMBOL leaves a symbol out.
# openbell watch list prints the result.
{DEFAULT}
"""


@dataclass(frozen=True, slots=True)
class Watchlist:
    """The instruments in the order of the file, and the errors of bad lines."""

    instruments: tuple[Instrument, ...]
    faults: tuple[str, ...] = ()
    removed: frozenset[Instrument] = frozenset()
    """Instruments that a line such as `-AAPL` leaves out."""
    chosen: frozenset[Instrument] = frozenset()
    """Instruments that the user has listed: neither defaults of the feed nor added by an import."""


def parse_watchlist(text: str, default: Iterable[Instrument] = ()) -> Watchlist:
    """Returns the watchlist of a text; bad lines are skipped and listed in `faults`."""
    found: dict[Instrument, None] = {}
    removed: set[Instrument] = set()
    chosen: set[Instrument] = set()
    faults = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        symbol, _, comment = (part.strip() for part in line.partition("#"))
        if symbol == DEFAULT:
            found.update(dict.fromkeys(default))
        elif symbol:
            try:
                if symbol.startswith("-"):
                    removed.add(parse(symbol[1:]))
                else:
                    instrument = parse(symbol)
                    found[instrument] = None
                    chosen |= {instrument} if comment != IMPORTED else set()
            except InvalidSymbol as error:
                faults.append(f"line {number}: {error.message}")
    kept = tuple(each for each in found if each not in removed)
    return Watchlist(kept, tuple(faults), frozenset(removed), frozenset(chosen))


class WatchlistFile:
    """The file; it is parsed again only if it or the default symbols have changed."""

    def __init__(
        self,
        path: Path,
        default: Callable[[], tuple[Instrument, ...]] = tuple,
        keeps: Callable[[Instrument], bool] | None = None,
        in_thread: Callable[[Callable[[], Watchlist]], Awaitable[Watchlist]] | None = None,
    ) -> None:
        """`keeps`: whether an instrument that the user has not listed is watched: it was known by then, or is simulated.

        `in_thread` calls a function, in a thread if `default` or `keeps` would block the event loop.
        """
        self.path = path
        self._default = default
        self._keeps = keeps
        self._in_thread = in_thread
        self._seen: tuple[tuple[int, int] | None, tuple[Instrument, ...]] | None = None
        self._list = Watchlist(())

    async def current(self) -> Watchlist:
        """Returns what `read` does, without blocking the event loop."""
        return self.read() if self._in_thread is None else await self._in_thread(self.read)

    def read(self) -> Watchlist:
        """Returns the current watchlist; the default symbols if there is no file. Raises `StoreError`. It may block."""
        default = self._default()
        try:
            status = self.path.stat()
            seen = ((status.st_mtime_ns, status.st_size), default)
            if seen != self._seen:
                text = self.path.read_text(encoding="utf-8", errors="replace")
                self._list, self._seen = parse_watchlist(text, default), seen
        except FileNotFoundError:
            if self._seen != (None, default):
                self._list, self._seen = Watchlist(default), (None, default)
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error
        if self._keeps is None:
            return self._list
        listed, chosen = self._list.instruments, self._list.chosen
        return replace(self._list, instruments=tuple(each for each in listed if each in chosen or self._keeps(each)))

    def state(self) -> tuple[int, int] | None:
        """Returns a value that differs after every edit of the file; None if there is no file."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def create(self) -> None:
        """Write a list of the default symbols, for users to edit, if there is no file yet. Raises `StoreError`."""
        with self._locked():
            if not self.path.exists():
                self._write(NEW_FILE)

    def watch(self, symbols: Iterable[str]) -> list[Instrument]:
        """Add symbols, or write a list of these alone if there is no file yet; returns the symbols that are new."""
        wanted = list(dict.fromkeys(map(parse, symbols)))
        with self._locked():
            if not self.path.exists():
                self._write("".join(f"{each}\n" for each in wanted))
                return wanted
        return self.add(str(each) for each in wanted)

    def add(self, symbols: Iterable[str]) -> list[Instrument]:
        """Add the symbols that are not watched yet, and return them. Raises `InvalidSymbol` and `StoreError`."""
        wanted = list(dict.fromkeys(map(parse, symbols)))
        with self._locked():
            text = self._text()
            new = [each for each in wanted if each not in self._parsed(text).instruments]
            # A symbol that was removed before comes back.
            text = _without(text, lambda line: line.removed & set(new))
            self._append(text, [str(each) for each in new if each not in self._parsed(text).instruments])
        return new

    def join(self, instruments: Iterable[Instrument]) -> list[Instrument]:
        """Add imported instruments, except removed ones; returns those that are new. Raises `StoreError`."""
        with self._locked():
            text = self._text()
            known = self._parsed(text)
            new = [each for each in dict.fromkeys(instruments) if each not in known.removed | set(known.instruments)]
            self._append(text, [f"{each}  # {IMPORTED}" for each in new])
        return new

    def remove(self, symbols: Iterable[str]) -> list[Instrument]:
        """Leave symbols out, and return those that were watched. Raises `InvalidSymbol` and `StoreError`."""
        unwanted = dict.fromkeys(map(parse, symbols))
        with self._locked():
            text = self._text()
            found = [each for each in unwanted if each in self._parsed(text).instruments]
            text = _without(text, lambda line: set(line.instruments) & set(found))
            self._append(text, [f"-{each}" for each in found])
        return found

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other threads and processes from changing the list between reading and writing it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _parsed(self, text: str) -> Watchlist:
        return parse_watchlist(text, self._default())

    def _text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return NEW_FILE
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error

    def _append(self, text: str, lines: Iterable[str]) -> None:
        """Write the text and these lines, if the file does not contain exactly that."""
        text += "" if text.endswith("\n") or not text else "\n"
        text += "".join(f"{line}\n" for line in lines)
        if text != self._text():
            self._write(text)

    def _write(self, text: str) -> None:
        """Write the file atomically: a partly written list would be used from then on. The caller holds the lock."""
        beside = self.path.with_name(f".watchlist.{os.getpid()}.{threading.get_ident()}")
        try:
            try:
                beside.write_text(text, encoding="utf-8", errors="surrogateescape")
                beside.replace(self.path)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error}") from error


def _without(text: str, unwanted: Callable[[Watchlist], object]) -> str:
    """Returns a text without the lines whose content is unwanted."""
    return "".join(line for line in text.splitlines(keepends=True) if not unwanted(parse_watchlist(line)))


class StoredInstruments:
    """Reads them anew when the store has changed."""

    def __init__(self, store: Callable[[], BarStore], threads: Threads, *, is_remote: bool) -> None:
        """`is_remote` is True for a database, which is asked over the network."""
        self._store = store
        self._threads = threads
        self._is_remote = is_remote
        self._known: tuple[Instrument, ...] = ()
        self._state: Hashable = None
        """The state of the store that they were read at; None before the first time."""
        self._reading: asyncio.Task[None] | None = None

    def read(self) -> tuple[Instrument, ...]:
        """Returns the instruments that have stored bars; those known before while the store fails.

        On the event loop, those known before are also returned while a thread asks a database: before the first time,
        `read` must be called in a thread.
        """
        with suppress(StoreError):
            state = self._store().versions.of_store()
            if state != self._state:
                if self._is_remote and self._state is not None and in_event_loop():
                    self._read_soon(state)
                else:
                    self._read(state)
        return self._known

    def must_wait(self) -> bool:
        """Returns True if `read` waits for the store. Those of a database are known once they were read."""
        if self._state is None or self._is_remote:
            return self._state is None
        with suppress(StoreError):
            return self._store().versions.of_store() != self._state
        return False

    def _read(self, state: Hashable) -> None:
        self._known = tuple(sorted({series.instrument for series in self._store().stored()}))
        self._state = state

    def _read_soon(self, state: Hashable) -> None:
        async def read() -> None:
            with suppress(StoreError):
                await self._threads.run(self._read, state)

        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(read(), name="stored instruments", context=own_context())


def in_event_loop() -> bool:
    """Returns True if the calling thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
