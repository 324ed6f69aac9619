"""Commands that start on a full disk name it and its folder, whatever SQLite says."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.small_disk import steps_on_a_small_disk

ORDER = json.dumps({"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"})
PLACE = ["run", "home", "call", "chartgen", "place_order", ORDER, "--trade"]
PRICE = ["run", "home", "call", "market-data", "get_current_price", '{"symbol": "BTC/USD"}']
ADD = ["run", "home", "token", "add", "one", "--scopes", "read"]


def test_every_store_of_a_home_names_its_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    home = disk / "home"
    on_bars, on_records = f"the disk of {home}/simulated/data is full", f"the disk of {home}/simulated is full"
    expected = [
        (PLACE, on_bars),
        (PRICE, on_bars),
        (ADD, f"the disk of {home} is full"),
        (["run", "home", "verify"], on_records),
        (["run", "home", "backup", str(disk / "copy")], "is full"),
        (["run", "home", "doctor"], on_records),
    ]
    steps = [PLACE, ADD, ["fill"], *(step for step, _ in expected), ["free"], ["run", "home", "verify"]]
    *before, after = steps_on_a_small_disk(disk, *steps)
    assert [each["code"] for each in before[:2]] == [0, 0]
    for (_, sentence), found in zip(expected, before[2:], strict=True):
        assert found["code"] == 1, found
        assert sentence in found["output"] + found["errors"], found
        assert "disk I/O" not in found["output"] + found["errors"], found
        assert "Traceback" not in found["errors"]
    assert after["code"] == 0, after


def test_a_new_home_on_a_full_disk_names_it_too(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    for found in steps_on_a_small_disk(disk, ["fill"], PLACE, PRICE, ADD):
        assert found["code"] == 1, found
        text = found["output"] + found["errors"]
        assert "is full" in text or "No space left on device" in text, found
        assert str(disk / "home") in text, found
