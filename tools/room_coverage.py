"""Join the figures of a measured run of the tests and print the coverage of each room; fail if a pure room has too little.

`python -m tools.room_coverage FILE`: FILE is what TESTS_COVERAGE named during the run (tests/measured.py).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import coverage
from tests.markers import PURE_ROOMS
from tests.measured import SETTINGS

LEAST = 95.0
"""Percent of the branches of a pure room that the tests must take."""


@dataclass
class Covered:
    """Branches and lines, of all and of those that ran."""

    branches: int = 0
    taken: int = 0
    lines: int = 0
    ran: int = 0

    def add(self, summary: dict[str, int]) -> None:
        """Counts a file, as coverage.py's JSON report has it."""
        self.branches += summary["num_branches"]
        self.taken += summary["covered_branches"]
        self.lines += summary["num_statements"]
        self.ran += summary["covered_lines"]


def percent(part: int, whole: int) -> float:
    """Returns 100 if there is nothing to cover."""
    return 100 * part / whole if whole else 100.0


def rooms(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, Covered]:
    """The figures of each folder of the package, in alphabetical order, and of all of them."""
    found: dict[str, Covered] = defaultdict(Covered)
    for file, figures in sorted(report["files"].items()):
        parts = Path(file).parts
        inside = parts[len(parts) - parts[::-1].index("openbell") :]
        for room in (inside[0] if len(inside) > 1 else "(top)", "all"):
            found[room].add(figures["summary"])
    found["all"] = found.pop("all")
    return dict(found)


def table(found: dict[str, Covered]) -> list[str]:
    """A line for each room."""
    width = max(map(len, found))
    return [f"{'room':{width}}  branches   lines"] + [
        f"{room:{width}}  {percent(each.taken, each.branches):6.1f} %  {percent(each.ran, each.lines):5.1f} %"
        for room, each in found.items()
    ]


def too_little(found: dict[str, Covered]) -> list[str]:
    """A sentence for each pure room with less than the least."""
    shares = {room: percent(found[room].taken, found[room].branches) for room in PURE_ROOMS}
    return [
        f"{room}: {share:.1f} % of the branches, wanted {LEAST:g} %" for room, share in shares.items() if share < LEAST
    ]


def main(file: str) -> int:
    """The exit code."""
    joined = coverage.Coverage(data_file=file, config_file=str(SETTINGS))
    joined.combine(strict=True)
    joined.save()
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "coverage.json"
        joined.json_report(outfile=str(written))
        found = rooms(json.loads(written.read_text(encoding="utf-8")))
    print(*table(found), *(missing := too_little(found)), sep="\n")  # noqa: T201
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
