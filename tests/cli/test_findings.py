"""`openbell doctor` prints one cause once, and together what one step mends."""

from __future__ import annotations

from pathlib import Path

from openbell.cli.findings import Finding, grouped, lines_of, named
from tests.cli.in_process import command


def test_findings_are_grouped_by_what_mends_them_and_bad_ones_come_first() -> None:
    found = [
        Finding("note", "no bars", "openbell up"),
        Finding("bad", "no connection for orders", "start it", cause="PostgreSQL"),
        Finding("note", "no gateway", "openbell up"),
        Finding("bad", "no connection for users", "start it", cause="PostgreSQL"),
        Finding("note", "halted"),
        Finding("note", "halted"),
    ]
    assert ["\n".join(lines_of(group)) for group in grouped(found)] == [
        "bad   no connection for orders\n      → start it",
        "note  no bars\nnote  no gateway\n      → openbell up",
        "note  halted",
    ]


def test_long_groups_are_counted() -> None:
    lines = lines_of([Finding("bad", f"month {number}", "mend") for number in range(25)])
    assert (len(lines), lines[10]) == (12, "bad   and 15 more of that kind")
    assert named("abcdefghijkl") == "a, b, c, d, e, f, g, h, i, j and 2 more"


def test_symbols_that_a_feed_lacks_and_a_database_that_is_down_take_one_line_each(tmp_path: Path) -> None:
    (tmp_path / "watchlist.txt").write_text("AAPL\nZZZZ\nYYYY\n")
    code, out, _ = command(tmp_path, "doctor", DATABASE_URL="postgresql://nobody@127.0.0.1:9/none")
    assert code == 1
    assert "note  feed sim does not have 2 watched symbols: ZZZZ, YYYY\n      → openbell watch remove" in out
    assert out.count("no connection to PostgreSQL") == 1
    assert "→ start PostgreSQL" in out
    assert "grant SELECT" not in out
