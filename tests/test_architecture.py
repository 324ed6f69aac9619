"""docs/architecture.md names the files that its paths visit, in their order."""

from __future__ import annotations

from pathlib import Path

from tests.architecture import PAGE, SHARED, Step, faults, is_passed, rewritten, shared, tables, wanted
from tests.tracing import ROOT
from tests.walks import WALKS, walk

A_PATH = [Step("a.py", "first", ["b.py"]), Step("c.py", "second")]


def test_each_path_visits_the_files_of_its_table_in_that_order(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    passed, found = shared(page), tables(page)
    assert list(found) == [*WALKS, SHARED]
    wrong, visits = "", {}
    for number, heading in enumerate(WALKS):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        visits[heading] = walk(heading, folder)
        if differs := faults(found[heading], visits[heading], passed):
            wrong += "\n".join([f"\n{heading}:", *differs, "its table would be", ""])
            wrong += wanted(found[heading], visits[heading], passed)
    assert not wrong, f"{wrong}\n`python -m tests.architecture` writes these tables."
    on_a_path = {file for visited in visits.values() for file in visited}
    unused = [name for name in passed if not any(is_passed(file, [name]) for file in on_a_path)]
    assert not unused, f"no path visits these files of {SHARED!r}"


def test_a_renamed_file_and_a_new_hop_are_found() -> None:
    assert faults(A_PATH, ["a.py", "market/x.py", "b.py", "c.py"], ["market/"]) == []
    assert faults(A_PATH, ["a.py", "b.py", "d.py"], []) == [
        "c.py is named and not visited",
        "d.py is visited and not named",
    ]
    assert faults(A_PATH, ["a.py", "b.py", "hop.py", "c.py"], []) == ["hop.py is visited and not named"]
    assert faults(A_PATH, ["a.py", "c.py"], []) == ["b.py is named and not visited"]


def test_another_order_is_found() -> None:
    assert faults(A_PATH, ["c.py", "a.py", "b.py"], []) == ["a.py is not visited in the order of the table"]


def test_the_table_that_is_wanted_keeps_texts_and_has_new_files_with_the_step_before_them() -> None:
    assert wanted(A_PATH, ["x/e.py", "c.py", "market/x.py", "d.py", "x/f.py", "x/g.py", "a.py"], ["market/"]) == (
        "| file | what it does there | with |\n|---|---|---|\n"
        "| `c.py` | second | `x/{e,f,g}.py` `d.py` |\n| `a.py` | first |  |\n"
    )


def test_what_is_written_is_read_again() -> None:
    page = PAGE.read_text(encoding="utf-8")
    heading = next(iter(WALKS))
    visited = [name for step in tables(page)[heading] for name in (step.file, *step.others)]
    assert rewritten(page, {heading: visited}) == page


def test_the_page_is_linked_first() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert contributing.index("](docs/architecture.md)") == contributing.index("](")
    documentation = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Documentation")[2]
    rows = documentation.partition("|---|---|\n")[2]
    assert rows.startswith("| [docs/architecture.md](docs/architecture.md) ")
