"""The file in the home that halts trading: it can be written without valid settings, a database or a broker.

Its lines are the reason, since when trading is halted, and for each ledger that has recorded the halt, the number of the
entry and the place of the ledger.
"""

from __future__ import annotations

import os
from pathlib import Path

from openbell.trading.halt import Halt

HALT_FILE = "halted"
"""Its name in the home."""
LONGEST_REASON = 200
OPERATOR = "by the operator"
"""The reason if none was given."""


class HaltFile:
    """The switch in the home."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.incomplete: str | None = None
        """Why the last `set` has halted trading and could not store its reason; None if it could."""

    def read(self) -> Halt | None:
        """Returns why trading is halted; None if it is not.

        A file that cannot be read may be a halt or not, also if no handle is left to open it: then the halt is not known.
        """
        try:
            reason = self._stored_reason()
        except OSError as error:
            why = f"cannot be read ({error.strerror or error})"
        except UnicodeDecodeError:
            why = "is not text; openbell halt writes it anew"
        else:
            return None if reason is None else Halt(reason[:LONGEST_REASON] or OPERATOR)
        return Halt(f"no new positions, because {self.path} {why}", known=False)

    def since(self) -> float | None:
        """Returns when trading was halted first; None if it is not halted. Without a stored time, the file's."""
        try:
            return float(self._lines()[1])
        except (OSError, ValueError, IndexError):
            return self.path.stat().st_mtime if self.path.exists() else None

    def set(self, reason: str, now: float) -> float:
        """Halt trading; returns since when it is halted: a repeated halt keeps the time and the reason of the first.

        Raises `OSError` if trading is not halted. On a full disk it is: a file without content needs no room.
        """
        since = min(now, self.since() or now)
        self.incomplete = None
        if self._reason():
            self._forget_entries()
            return since
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._write(f"{' '.join(reason.split())}\n{since!r}\n")
        except OSError as error:
            self.path.touch()
            self.incomplete = error.strerror or type(error).__name__
        return since

    def _forget_entries(self) -> None:
        """Make a repeated halt one that no ledger has recorded: a resume that has ended the first must not end it.

        The file is cut in place, which needs no room on a full disk.
        """
        kept = b"".join(self.path.read_bytes().splitlines(keepends=True)[:2])
        os.truncate(self.path, len(kept))
        os.utime(self.path)

    def changed_at(self) -> int:
        """Returns a value that differs after every halt; 0 if there is no file."""
        try:
            return self.path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def entry(self, ledger: str) -> int | None:
        """Returns the entry with which the ledger at a place has recorded this halt; None if it has not."""
        try:
            recorded = (line.partition(" ") for line in self._lines()[2:])
            return next((int(number) for number, _, place in recorded if place == ledger), None)
        except (OSError, ValueError):
            return None

    def note_entry(self, ledger: str, number: int) -> None:
        """Note that the ledger at a place has recorded this halt."""
        # A file that was made by hand or written to a full disk lacks the time and perhaps the reason.
        lines = self._lines() if len(self._lines()) > 1 else [*(self._lines() or [""]), repr(self.since())]
        kept = [line for line in lines[2:] if line.partition(" ")[2] != ledger]
        self._write("\n".join([*lines[:2], *kept, f"{number} {ledger}", ""]))

    def lift(self) -> bool:
        """Remove the file; returns True if trading was halted."""
        was_halted = self.path.exists()
        self.path.unlink(missing_ok=True)
        return was_halted

    def _write(self, text: str) -> None:
        """Replace the file in one step: on a full disk, the file that is there stays as it is."""
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            beside.write_text(text, encoding="utf-8")
            beside.replace(self.path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise

    def _reason(self) -> str | None:
        """Returns the stored reason; empty if it cannot be read, None if there is no file."""
        try:
            return self._stored_reason()
        except (OSError, UnicodeDecodeError):
            return ""

    def _stored_reason(self) -> str | None:
        try:
            return self.path.read_text(encoding="utf-8").partition("\n")[0].strip()
        except FileNotFoundError:
            return None

    def _lines(self) -> list[str]:
        # A file that is not UTF-8 halts too: it must be possible to note in it that the halt was recorded.
        return self.path.read_text(encoding="utf-8", errors="replace").splitlines()
