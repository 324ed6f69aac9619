"""`openbell restore` into a home that is a mount point: complete, or as before, whenever it is killed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.small_disk import steps_on_a_small_disk

HOME = "."
MOST = 12
"""More renames than a restore of these homes needs."""
KILLED = 9


def order(quantity: str) -> list[str]:
    given = json.dumps({"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": quantity})
    return ["run", HOME, "call", "chartgen", "place_order", given, "--trade"]


GET = ["run", HOME, "call", "chartgen", "get_orders", "{}", "--trade"]
VERIFY = ["run", HOME, "verify"]


def test_a_disk_is_restored_and_its_old_files_are_kept(tmp_path: Path) -> None:
    disk, copy = tmp_path / "disk", str(tmp_path / "copy")
    steps = [order("0.01"), ["run", HOME, "backup", copy], order("0.02"), ["run", HOME, "restore", copy]]
    steps += [["run", HOME, "restore", copy, "--replace"], ["run", HOME, "verify", "--adopt"], VERIFY, GET]
    *_, plain, restored, _, verified, found = steps_on_a_small_disk(disk, *steps)
    assert "is not empty: --replace keeps it aside" in plain["errors"]
    assert restored["code"] == 0, restored
    assert f"the old home is kept as {disk}/before-restore-" in restored["output"]
    assert verified["code"] == 0, verified
    assert [each["quantity"] for each in json.loads(found["output"])["orders"]] == ["0.01"]


def test_a_restore_that_is_killed_at_any_moment_is_repeated(tmp_path: Path) -> None:
    """Before each repetition every command refuses the home, and the repetition has its old files again."""
    disk, copy = tmp_path / "disk", str(tmp_path / "copy")
    steps = [order("0.01"), ["run", HOME, "token", "add", "one", "--scopes", "read"]]
    steps += [["run", HOME, "halt", "--reason", "restoring"], ["run", HOME, "backup", copy]]
    for number in range(MOST):
        steps += [["crash", str(number), HOME, "restore", copy, "--replace"], VERIFY, ["run", HOME, "health"]]
    steps += [["run", HOME, "restore", copy, "--replace"], VERIFY, ["run", HOME, "token", "list"]]
    found = steps_on_a_small_disk(disk, *steps)[4:]
    crashes, (restored, verified, tokens) = found[: 3 * MOST], found[3 * MOST :]
    killed = [at for at in range(MOST) if crashes[3 * at]["code"] == KILLED]
    assert len(killed) > 4, crashes
    assert killed == list(range(len(killed)))
    for at in range(MOST):
        crash, checked, health = crashes[3 * at : 3 * at + 3]
        if at in killed:
            for each in (checked, health):
                assert each["code"] in {1, 2}, each
                assert "run openbell restore DIR --replace again" in each["errors"], each
        else:
            assert crash["code"] == 0, crash
            assert checked["code"] == 0, checked
    assert "what it had moved is back in its place" in crashes[3 * len(killed)]["output"]
    assert "is halted (restoring), and stays so" in restored["output"], restored
    assert verified["code"] == 0, verified
    assert "one" in tokens["output"]
