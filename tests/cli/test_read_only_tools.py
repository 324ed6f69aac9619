"""`openbell call --read-only` on every tool leaves the home as it is; halting is allowed all the same, resuming is not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.in_process import command
from tests.client import run
from tests.counts import runs
from tests.servers.every_tool import WRITES, every_tool, samples

pytestmark = pytest.mark.usefixtures("short_search")
SAMPLES = runs(1, soak=4)
"""How many questions each tool that reads is asked; tools that write are asked all of theirs."""
AS_OF = "2026-01-07T15:30:00Z"
ORDER = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.001"}
FLAGS: list[tuple[str, ...]] = [("--trade",), ("--as-of", AS_OF), (), ("--trade", "--as-of", AS_OF)]
EMPTY = runs(2, soak=4)
"""With how many of these flags every tool is called in an empty home."""


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OPENBELL_"):
            monkeypatch.delenv(name)


def tree(home: Path) -> dict[str, str]:
    """Every path of a home with a digest of what is in it."""
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in home.rglob("*")
    }


@pytest.fixture(scope="module")
def _used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of the present and of a scenario, each with an order, an alert, a subscription and a decision."""
    home = tmp_path_factory.mktemp("used")
    decision = {"symbol": "BTC/USD", "action": "BUY", "confidence": 0.5, "reasoning": "because"}
    for flags in (("--trade",), ("--trade", "--as-of", "2026-01-07T15:00:00Z")):
        for server, tool, given in (
            ("chartgen", "place_order", ORDER),
            ("chartgen", "set_alert", {"symbol": "BTC/USD", "condition": {"price_above": 1}}),
            ("chartgen", "subscribe_notifications", {}),
            ("decisions", "save_decision", decision),
        ):
            code, out, errors = command(home, "call", server, tool, json.dumps(given), *flags, TIMEOUT="60")
            assert code == 0, out + errors
    assert (home / "simulated" / "records.sqlite").exists()
    assert (home / "simulated" / "scenarios" / "as-of" / "records.sqlite").exists()
    return home


@pytest.fixture
def used(_used: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_used, tmp_path / "home"))


def walk(home: Path, flags: tuple[str, ...]) -> None:
    """Call every tool; those that write are refused, and none changes anything."""
    before = tree(home)
    for server, tool in every_tool():
        for given in samples(server, tool.name)[: None if tool.effect in WRITES else SAMPLES]:
            code, out, errors = command(
                home, "call", server, tool.name, json.dumps(given), "--read-only", *flags, TIMEOUT="60"
            )
            assert out, errors
            assert tree(home) == before, (server, tool.name, given)
            if tool.effect in WRITES:
                assert code == 1
                assert "--read-only" in out, out


@pytest.mark.parametrize("flags", FLAGS[:EMPTY])
def test_no_tool_makes_anything_in_an_empty_home(tmp_path: Path, flags: tuple[str, ...]) -> None:
    walk(tmp_path, flags)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flags", FLAGS)
def test_no_tool_changes_anything_in_a_used_home(used: Path, flags: tuple[str, ...]) -> None:
    walk(used, flags)
    assert not [path for path in used.rglob("*") if path.name.endswith(("-wal", "-shm"))]


@pytest.mark.parametrize(
    ("server", "tool"),
    [("portfolio", "get_balance"), ("decisions", "get_recent_decisions"), ("chartgen", "get_notifications")],
)
def test_processes_of_their_own_leave_nothing_behind(used: Path, tmp_path: Path, server: str, tool: str) -> None:
    empty = tmp_path / "empty"
    for home in (empty, used):
        before = tree(home)
        done = run(home, "call", server, tool, "{}", "--read-only", "--trade")
        assert done.returncode == 0, done.stderr
        assert tree(home) == before
    assert not empty.exists()


def test_a_read_only_desk_can_be_halted_and_not_resumed(used: Path) -> None:
    def place(number: int) -> Any:
        given = json.dumps({**ORDER, "client_order_id": str(number)})
        return run(used, "call", "chartgen", "place_order", given, "--trade")

    assert place(1).returncode == 0
    done = run(used, "halt", "--reason", "enough", READ_ONLY="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("halted: no position is opened on this home until openbell resume")
    refused = place(2)
    assert refused.returncode == 1
    assert "trading is halted: enough" in refused.stdout
    before = tree(used)
    done = run(used, "resume", READ_ONLY="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("openbell: this desk is read-only (OPENBELL_READ_ONLY)")
    assert tree(used) == before
    assert place(3).returncode == 1
    assert run(used, "resume").stdout == "resumed: positions may be opened again\n"
    assert place(4).returncode == 0


def test_halting_an_empty_home_that_is_read_only_stops_opening(tmp_path: Path) -> None:
    assert run(tmp_path, "halt", READ_ONLY="1").returncode == 0
    refused = run(tmp_path, "call", "chartgen", "place_order", json.dumps(ORDER), "--trade")
    assert "trading is halted" in refused.stdout


def test_the_exception_is_written_wherever_read_only_is_explained(tmp_path: Path) -> None:
    for words in (("up", "--help"), ("halt", "--help")):
        text = " ".join(run(tmp_path, *words).stdout.split())
        assert "halt still works" in text or "also works with OPENBELL_READ_ONLY" in text, text
    docs = Path(__file__).resolve().parents[2] / "docs"
    assert "openbell halt works all the same" in (docs / "settings.md").read_text()
    assert "The one exception is `openbell halt`" in (docs / "data.md").read_text()
