"""Runs the official suite, reads its results, and writes docs/conformance.md.

`python -m tests.gateway.conformance.suite` writes the page anew; with `--keep-results`, without running the suite.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.client import environment
from tests.contracts import rows
from tests.gateway.processes import served
from tests.npm import programs

PAGE = Path(__file__).resolve().parents[3] / "docs" / "conformance.md"
VERSION = json.loads((programs.HERE / "conformance" / "package.json").read_text())["dependencies"][
    "@modelcontextprotocol/conformance"
]
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
PATIENCE = 120.0
_STAMP = re.compile(r"^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$")
_NO_DELETE = "DELETE is answered with 405, as the protocol permits: sessions need not be ended, see decision 21."

NOT_PASSED: dict[tuple[str, str, str], str] = {
    ("server-session-lifecycle", "server-session-delete-accepted", "SKIPPED"): _NO_DELETE,
    ("server-session-lifecycle", "server-session-terminated-returns-404", "SKIPPED"): _NO_DELETE,
}
"""Why a check (of a scenario, by its id, with its status) need not pass."""
_WORDS = {"SUCCESS": "passed", "SKIPPED": "skipped", "WARNING": "warned of", "FAILURE": "FAILED"}


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    scenario: str
    id: str
    status: str
    message: str = ""

    @property
    def reason(self) -> str | None:
        """Why it need not pass; None if it must."""
        return NOT_PASSED.get((self.scenario, self.id, self.status))


def applicable(revision: str) -> set[str]:
    """The suite's own list of the scenarios of a revision."""
    command = programs.command("conformance", "conformance")
    listed = subprocess.run(
        [*command, "list", "--server", "--spec-version", revision],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout
    return set(re.findall(r"^ +- (\S+)", listed, re.MULTILINE))


def run(revision: str, folder: Path) -> list[Check]:
    """The results of all scenarios of a revision, against a new server."""
    with served("tests.gateway.conformance.everything", folder) as port:
        url = f"http://localhost:{port}/mcp"
        flags = ["--url", url, "--suite", "all", "--spec-version", revision, "-o", str(folder / "results")]
        done = subprocess.run(
            [*programs.command("conformance", "conformance"), "server", *flags],
            env={**environment(folder), "NODE_COMPILE_CACHE": str(programs.CACHE / "conformance" / "compiled")},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    found = [check for file in sorted((folder / "results").glob("*/checks.json")) for check in _checks(file)]
    assert found, done.stdout + done.stderr
    return found


def _checks(file: Path) -> list[Check]:
    named = _STAMP.match(file.parent.name)
    assert named, file
    return [
        Check(named[1], each["id"], each["status"], str(each.get("errorMessage") or ""))
        for each in json.loads(file.read_text())
        if each["status"] != "INFO"
    ]


# The page

INTRODUCTION = """\
The official MCP conformance suite
([`@modelcontextprotocol/conformance`](https://github.com/modelcontextprotocol/conformance) {version}) runs in `make test`
against the gateway's guard and transport, on a test server that offers the tools, resources and prompts of the suite. The
table has the number of checks of each scenario and protocol revision; an empty cell means that the suite has no such
scenario for the revision. A test compares it with the results. `make docs` writes it anew."""

CONTRACTS = """\
## The five contracts

Every requirement of the five published contracts has a test in `tests/contracts/`: a file for each contract, its rows in the
order of the contract. In the rows of this table the desk differs on purpose, and the test of the row shows what it
does instead. A row without a test fails.

### Rows that differ, and why
"""


def column(checks: Iterable[Check]) -> dict[str, str]:
    """The cells of a revision: the result of each scenario in words."""
    by_scenario: dict[str, list[Check]] = defaultdict(list)
    for check in checks:
        by_scenario[check.scenario].append(check)
    return {scenario: _cell(found) for scenario, found in by_scenario.items()}


def _cell(checks: list[Check]) -> str:
    counts = Counter(check.status for check in checks)
    return ", ".join(f"{counts[status]} {word}" for status, word in _WORDS.items() if counts[status])


def columns_of(page: str) -> dict[str, dict[str, str]]:
    """The cells of a page by revision and scenario."""
    first, _, _ = page.partition("\n## ")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first.splitlines() if line.startswith("| ")]
    head = lines[0]
    cells = [line for line in lines if len(line) == len(head) and line is not head]
    return {
        revision: {line[0].strip("`"): line[at] for line in cells if line[at]} for at, revision in enumerate(head) if at
    }


def page(columns: Mapping[str, Mapping[str, str]]) -> str:
    """The page of these cells."""
    scenarios = sorted({scenario for cells in columns.values() for scenario in cells})
    lines = [
        "# Conformance",
        "",
        *INTRODUCTION.format(version=VERSION).splitlines(),
        "",
        f"| scenario | {' | '.join(columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    lines += [
        f"| `{scenario}` | {' | '.join(cells.get(scenario, '') for cells in columns.values())} |"
        for scenario in scenarios
    ]
    lines += ["", "Checks that are not passed:", "", "| scenario and check | reason |", "|---|---|"]
    lines += [f"| `{scenario}`: `{check}` | {reason} |" for (scenario, check, _), reason in NOT_PASSED.items()]
    lines += [
        "",
        "Scenarios of extensions (tasks, skills) belong to no revision; the gateway does not offer these extensions.",
        "",
        *CONTRACTS.splitlines(),
        "",
        *rows.table(),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the suite for every revision, or keep its results, and write the page."""
    kept = "--keep-results" in sys.argv[1:]
    columns = columns_of(PAGE.read_text(encoding="utf-8")) if kept else {}
    for revision in () if kept else REVISIONS:
        with tempfile.TemporaryDirectory() as folder:
            columns[revision] = column(run(revision, Path(folder)))
    PAGE.write_text(page(columns), encoding="utf-8")


if __name__ == "__main__":
    main()
