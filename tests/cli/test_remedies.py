"""On a home that does not trust its ledger, every message names a command that really ends the trouble."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.client import run

ORDER = json.dumps({"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"})
PLACE = ("call", "chartgen", "place_order", ORDER, "--trade")
AGAIN = ("call", "chartgen", "place_order", ORDER.replace("0.01", "0.02"), "--trade")
NAMED = re.compile(r"openbell (verify --adopt)")
SAYING: dict[str, tuple[str, ...]] = {
    "doctor": ("doctor",),
    "verify": ("verify",),
    "an order": PLACE,
    "an account": ("account", "add", "other"),
    "halt": ("halt",),
}


@pytest.mark.parametrize("saying", SAYING)
def test_a_second_machine_is_told_the_command_that_lets_it_trade(tmp_path: Path, database: str, saying: str) -> None:
    def openbell(home: str, *words: str) -> subprocess.CompletedProcess[str]:
        return run(tmp_path / home, *words, DATABASE_URL=database)

    assert openbell("first", *PLACE).returncode == 0
    said = openbell("second", *SAYING[saying])
    assert said.returncode == 1, said.stdout
    named = NAMED.search(said.stdout + said.stderr)
    assert named, said.stdout + said.stderr
    mended = openbell("second", *named[1].split())
    assert mended.returncode == 0, mended.stdout + mended.stderr
    for words in (("doctor",), ("verify",), ("halt",), ("resume",), AGAIN):
        done = openbell("second", *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)


def test_a_home_whose_head_file_was_lost_is_told_it_too(tmp_path: Path) -> None:
    assert run(tmp_path, *PLACE).returncode == 0
    (tmp_path / "simulated" / "ledger.head").unlink()
    for words in (("doctor",), ("verify",), PLACE):
        said = run(tmp_path, *words)
        assert said.returncode == 1, said.stdout
        assert NAMED.search(said.stdout + said.stderr), said.stdout
    assert run(tmp_path, "verify", "--adopt").returncode == 1, "the missing head is shown once more"
    for words in (("doctor",), ("verify",), AGAIN):
        done = run(tmp_path, *words)
        assert done.returncode == 0, (words, done.stdout)
