"""Strategies that were submitted, at the shell: they are listed, shown and traded as the canonical ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import command
from tests.servers.reverting_market import BUYS_LOW, days_file

BTC, NONE = "BTC/USD", {"FEED": "none"}


def printed(home: Path, *words: str, **settings: str) -> str:
    """The standard output of a command that succeeds."""
    code, out, errors = command(home, *words, **settings)
    assert code == 0, errors
    return out


def refused(home: Path, *words: str, **settings: str) -> str:
    """The one line on standard error of a command that fails."""
    code, out, errors = command(home, *words, **settings)
    assert (code, out, errors.count("\n")) == (1, "", 1), (out, errors)
    return errors


def called(home: Path, server: str, tool: str, **arguments: Any) -> Any:
    """The data of a tool's answer."""
    words = ("call", server, tool, json.dumps(arguments))
    return json.loads(printed(home, *words, TIMEOUT="60", **NONE))["data"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Imported days of a market, and a submitted spec."""
    folder = tmp_path_factory.mktemp("market")
    printed(folder / "home", "import", str(days_file(folder)), "--symbol", BTC, **NONE)
    called(folder / "home", "strategy-db", "submit_new_spec", **BUYS_LOW)
    return folder / "home"


def test_a_submitted_strategy_is_listed_in_a_section_of_its_own(home: Path) -> None:
    listed = printed(home, "strategies", "list", **NONE)
    canonical, _, own = listed.partition("\nsubmitted:\n")
    assert len(canonical.splitlines()) == 60
    assert own.split() == ["BUYS_LOW", "simple", *"Buys after a fall, sells after a rise".split()]


@pytest.mark.parametrize("name", ["BUYS_LOW", "buys low", "Buys-Low"])
def test_a_submitted_strategy_is_shown_and_traded_by_its_name(home: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(printed(home, "strategies", "show", name, **NONE))
    assert "BUYS_LOW is valid" in printed(home, "strategies", "check", str(file), **NONE)
    by_name = printed(home, "backtest", name, BTC, "--set", "n=4", **NONE)
    assert by_name.startswith("BUYS_LOW (n=4) on BTC/USD 1d, 1,250 imported bars")
    by_file = printed(home, "backtest", str(file), BTC, "--set", "n=4", **NONE)
    assert without_timing(by_file) == without_timing(by_name)
    # A submitted spec is tested by later trades only; when a file was written nobody knows.
    assert "Timing: since its submission, 0 trades cannot tell timing from luck" in by_name
    assert "unless its rules were chosen on these bars" in by_file
    assert "4 combinations were tried" in printed(home, "sweep", name, BTC, "--set", "n=3..6:1", **NONE)


def without_timing(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("Timing: "))


def test_a_name_with_spaces_finds_the_same_canonical_strategy(home: Path) -> None:
    assert printed(home, "strategies", "show", "macd crossover").startswith("name: MACD_CROSSOVER\n")
    assert called(home, "strategy-db", "get_implementations", spec_id="buys low", status="ALL")["pagination"]
    assert printed(home, "backtest", "macd crossover", BTC, **NONE).startswith("MACD_CROSSOVER ")


def test_an_implementation_is_traded_with_its_parameters_and_timeframe(home: Path) -> None:
    """The bars of the fixture are old, but the ranking does not need new ones."""
    ranked = called(home, "strategy", "get_top_strategies", symbol=BTC, limit=100)["items"]
    best = next(each for each in ranked if each["name"] == "BUYS_LOW")["strategy_id"]
    tool = called(home, "backtest", "run_backtest", strategy_id=best, symbol=BTC)
    shown = printed(home, "backtest", best, BTC, **NONE)
    assert shown.startswith(f"BUYS_LOW ({tool['note'].split(';')[0]}) on BTC/USD 1d, 1,250 imported bars")
    assert f"{tool['total_return'] * 100:,.2f} %" in shown
    assert "\nIts parameters were chosen on bars before 20" in shown
    assert "\nIts parameters were chosen on bars before 20" in printed(
        home, "backtest", best, BTC, "--set", "n=4", **NONE
    )
    assert "no strategy 'impl_none'" in refused(home, "backtest", "impl_none", BTC, **NONE)


def test_an_unknown_name_suggests_submitted_strategies_too(home: Path) -> None:
    for words in (("backtest", "BUY_LOW", BTC), ("sweep", "buy low", BTC), ("strategies", "show", "BUYSLOW")):
        assert "did you mean 'BUYS_LOW'?" in refused(home, *words, **NONE)
    assert "openbell strategies list" in refused(home, "strategies", "show", "zzz", **NONE)


def test_reading_strategies_in_a_new_home_creates_nothing(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "mine.yaml"
    assert len(printed(home, "strategies", "list").splitlines()) == 60
    file.write_text(printed(home, "strategies", "show", "RVI"))
    printed(home, "strategies", "check", str(file))
    for words in (("strategies", "show", "MINE"), ("backtest", "MINE", BTC), ("sweep", "impl_1", BTC)):
        assert "no strategy" in refused(home, *words)
    assert not home.exists()


# Submitting a file


def spec_file(folder: Path, **parts: Any) -> Path:
    """A file of a spec, with the keys of the tool's arguments."""
    file = folder / "mine.yaml"
    file.write_text(json.dumps({**BUYS_LOW, **parts}))
    return file


def test_a_file_is_submitted_once_and_the_server_has_it(tmp_path: Path) -> None:
    home, file = tmp_path / "home", spec_file(tmp_path, name="From a file", side="SHORT")
    assert printed(home, "strategies", "check", str(file)).endswith("FROM_A_FILE is valid (1 indicator, 1 parameter)\n")
    spec_id = printed(home, "strategies", "submit", str(file)).split()[-1]
    found = json.loads(
        printed(home, "call", "strategy-db", "get_top_specs", '{"source": "LLM_GENERATED"}', TIMEOUT="60")
    )
    assert [(each["name"], each["spec_id"]) for each in found["data"]["items"]] == [("FROM_A_FILE", spec_id)]
    assert "side: SHORT\n" in printed(home, "strategies", "show", spec_id)
    taken = "the name FROM_A_FILE is taken by a spec that you have submitted: choose another"
    assert refused(home, "strategies", "submit", str(file)) == f"openbell: {taken} name\n"
    assert f"warning: {taken} one to submit it" in printed(home, "strategies", "check", str(file))


def test_a_name_of_a_canonical_strategy_is_refused_and_a_check_warns(tmp_path: Path) -> None:
    home, file = tmp_path / "home", spec_file(tmp_path, name="macd crossover")
    taken = "the name MACD_CROSSOVER is taken by a canonical spec: choose another"
    assert f"warning: {taken} one to submit it" in printed(home, "strategies", "check", str(file))
    assert not home.exists()
    assert refused(home, "strategies", "submit", str(file)) == f"openbell: {taken} name\n"


def test_a_desk_that_may_not_write_refuses_to_submit(tmp_path: Path) -> None:
    home, file = tmp_path / "home", spec_file(tmp_path)
    assert "this desk is read-only" in refused(home, "strategies", "submit", str(file), "--read-only")
    assert "this desk is read-only" in refused(home, "strategies", "submit", str(file), READ_ONLY="1")
    assert "another time than the present" in refused(home, "strategies", "submit", str(file), AS_OF="2026-01-01")
    assert not home.exists()


def test_a_file_with_problems_is_not_submitted(tmp_path: Path) -> None:
    home, file = tmp_path / "home", spec_file(tmp_path, entry_conditions=[{"type": "OVR"}], parameters=[])
    code, out, errors = command(home, "strategies", "submit", str(file))
    assert (code, errors) == (1, "")
    assert f"{file}: entry_conditions[0].type: no condition 'OVR'; did you mean 'OVER'?" in out
    assert not home.exists()
