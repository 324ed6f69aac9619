"""The tables of docs/architecture.md. `python -m tests.architecture` writes them from walks of all paths."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tests.tracing import ROOT

PAGE = ROOT / "docs" / "architecture.md"
SHARED = "Passed on every path"
_HEADER = "| file | what it does there | with |"
_NAME = re.compile(r"`([^`]+)`")
_TABLE = re.compile(r"^\|.*\n(?:\|.*\n)+", re.MULTILINE)


@dataclass
class Step:
    """A row: a file, what it does there, and the files that it uses for that."""

    file: str
    text: str
    others: list[str] = field(default_factory=list)

    def row(self) -> str:
        """The row as Markdown."""
        return f"| `{self.file}` | {self.text} | {_grouped(self.others)} |"


def tables(page: str) -> dict[str, list[Step]]:
    """Returns the rows of the first table under each heading. Folders end with a slash."""
    found: dict[str, list[Step]] = {}
    for heading, text in _sections(page):
        if table := _TABLE.search(text):
            found[heading] = [_step(row) for row in table[0].splitlines()[2:]]
    return found


def shared(page: str) -> list[str]:
    """Returns the files and folders that every path may pass."""
    return [name for step in tables(page)[SHARED] for name in (step.file, *step.others)]


def is_passed(file: str, names: Iterable[str]) -> bool:
    """Returns True if a file is one of these, or in a folder of these."""
    return any(file == name or (name.endswith("/") and file.startswith(name)) for name in names)


def faults(steps: list[Step], visited: list[str], passed: list[str]) -> list[str]:
    """Returns what differs between a table and the files that its path visits."""
    files = [step.file for step in steps]
    others = [other for step in steps for other in step.others]
    found = [f"{file} is named and not visited" for file in (*files, *others) if file not in visited]
    found += [
        f"{file} is visited and not named"
        for file in visited
        if file not in {*files, *others} and not is_passed(file, passed)
    ]
    order = [file for file in visited if file in files]
    named = [file for file in files if file in visited]
    if order != named:
        before = next(first for first, second in zip(named, order, strict=True) if first != second)
        found.append(f"{before} is not visited in the order of the table")
    return found


def wanted(steps: list[Step], visited: list[str], passed: list[str]) -> str:
    """Returns the table for the files that a path visits. A file that is new on the path is with the step before it."""
    texts: Mapping[str, str] = {step.file: step.text for step in steps}
    found: list[Step] = []
    early: list[str] = []
    for file in visited:
        if file in texts:
            found.append(Step(file, texts[file]))
        elif not is_passed(file, passed):
            (found[-1].others if found else early).append(file)
    if not found:
        found.append(Step(early.pop(0), "?"))
    found[0].others[:0] = early
    return "\n".join([_HEADER, "|---|---|---|", *(step.row() for step in found)]) + "\n"


def rewritten(page: str, visits: Mapping[str, list[str]]) -> str:
    """Returns the page with the tables of these paths as they must be."""
    passed = shared(page)
    for heading, visited in visits.items():
        section = next(text for each, text in _sections(page) if each == heading)
        new = _TABLE.sub(lambda _: wanted(tables(page)[heading], visited, passed), section, count=1)  # noqa: B023
        page = page.replace(section, new)
    return page


def _sections(page: str) -> list[tuple[str, str]]:
    parts = re.split(r"^## (.*)\n", page, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def _step(row: str) -> Step:
    first, text, *rest = (cell.strip() for cell in row.strip("|").split(" | "))
    file, *more = _names(first)
    return Step(file, text, more + [name for cell in rest for name in _names(cell)])


def _names(cell: str) -> list[str]:
    """`stores/{buffer,coverage}.py` names two files."""
    found = []
    for name in _NAME.findall(cell):
        start, _, rest = name.partition("{")
        inside, _, end = rest.partition("}")
        found += [f"{start}{each}{end}" for each in inside.split(",")] if rest else [name]
    return found


def _grouped(files: list[str]) -> str:
    folders: dict[str, list[str]] = {}
    for file in files:
        folders.setdefault(str(PurePosixPath(file).parent), []).append(PurePosixPath(file).stem)
    found = []
    for folder, stems in folders.items():
        start = "" if folder == "." else f"{folder}/"
        found.append(f"`{start}{stems[0]}.py`" if len(stems) == 1 else f"`{start}{{{','.join(stems)}}}.py`")
    return " ".join(found)


def main() -> None:
    """Walk every path, and write its table."""
    from tests.walks import WALKS, walk

    visits = {}
    for heading in WALKS:
        with tempfile.TemporaryDirectory() as folder:
            visits[heading] = walk(heading, Path(folder))
        print(f"{heading}: {len(visits[heading])} files", file=sys.stderr)
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8"), visits), encoding="utf-8")


if __name__ == "__main__":
    main()
