"""The file in the home that halts trading: it can be written without valid settings, a database or a broker.

Its lines are the reason, since when trading is halted, and for each ledger that has recorded the halt, the number of the
entry and the place of the ledger.
"""

from __future__ import annotations

from pathlib import Path

HALT_FILE = "halted"
"""Its name in the home."""
LONGEST_REASON = 200
OPERATOR = "by the operator"
"""The reason if none was given."""


class HaltFile:
    """The switch in the home."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> str | None:
        """Returns why trading is halted; a file that cannot be read halts it too."""
        try:
            return self.path.read_text(encoding="utf-8").partition("\n")[0].strip()[:LONGEST_REASON] or OPERATOR
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            return OPERATOR

    def since(self) -> float | None:
        """Returns when trading was halted first; None if it is not halted. Files of earlier versions have no time."""
        try:
            return float(self._lines()[1])
        except (OSError, ValueError, IndexError):
            return self.path.stat().st_mtime if self.path.exists() else None

    def set(self, reason: str, now: float) -> float:
        """Halt trading; returns since when it is halted: a repeated halt keeps the time of the first."""
        since = min(now, self.since() or now)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(f"{' '.join(reason.split())}\n{since!r}\n", encoding="utf-8")
        return since

    def entry(self, ledger: str) -> int | None:
        """Returns the entry with which the ledger at a place has recorded this halt; None if it has not."""
        try:
            recorded = (line.partition(" ") for line in self._lines()[2:])
            return next((int(number) for number, _, place in recorded if place == ledger), None)
        except (OSError, ValueError):
            return None

    def note_entry(self, ledger: str, number: int) -> None:
        """Note that the ledger at a place has recorded this halt."""
        lines = self._lines()
        kept = [line for line in lines[2:] if line.partition(" ")[2] != ledger]
        self.path.write_text("\n".join([*lines[:2], *kept, f"{number} {ledger}", ""]), encoding="utf-8")

    def lift(self) -> bool:
        """Remove the file; returns True if trading was halted."""
        was_halted = self.path.exists()
        self.path.unlink(missing_ok=True)
        return was_halted

    def _lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()
