"""How many files of src each of the ten changes of CONTRIBUTING touches, counted on one that is there already."""

from __future__ import annotations

import re

import pytest

from tests.tracing import ROOT

SRC = ROOT / "src" / "openbell"
MOST = 4

CHANGES = {
    "a broker": (r"alpaca_live|AlpacaBroker|\bBROKER = BrokerKind\(\s*.alpaca", "brokers/alpaca/"),
    "a timeframe": (r"\bM45\b|[\"']45m\b", ""),
    "a server": (r"servers\.strategy_db|strategy_db\b.*strategy_db|[\"']strategy_db[\"']", "servers/strategy_db.py"),
    "a risk rule": (r"(?i)\bcollar\b|risk_collar", ""),
    "a setting": (r"\bstrategy_days\b|\bpaper_volume_share\b", ""),
    "an alert type": (r"(?i)price_below", ""),
    "a chart style": (r"[\"']hilo\b|[\"']hiLo\b", ""),
    "a store backend": (r"(?i)influx_(?!db)|\binflux/|stores\.influx", "stores/influx/"),
    "a scope": (r"[\"']admin[\"']|(rate|burst)_admin|Scope\.ADMIN\b.*:", ""),
    "the ledger's hash": (r"\bSCHEME\b", ""),
}
"""What an existing one is found by, and the package that is its own: it counts as one."""


def places(pattern: str, package: str) -> list[str]:
    """Returns the files that mention one of these, its own package as one."""
    found = {
        package if package and name.startswith(package) else name
        for path in SRC.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
        for name in [path.relative_to(SRC).as_posix()]
    }
    return sorted(found)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_touches_at_most_four_files(change: str) -> None:
    found = places(*CHANGES[change])
    assert 1 <= len(found) <= MOST, found


def test_contributing_names_the_ten_changes() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Where ten changes belong")[2]
    rows = re.findall(r"^\| ([^|]+?) \| (.+) \|$", table, re.MULTILINE)
    named = {change: set(re.findall(r"`src/openbell/([^`]+)`", files)) for change, files in rows}
    assert set(CHANGES) <= set(named)
    for change, arguments in CHANGES.items():
        assert 1 <= len(named[change]) <= MOST, change
        missing = [each for each in places(*arguments) if not any(each.startswith(name) for name in named[change])]
        assert not missing, f"{change}: {missing}"
