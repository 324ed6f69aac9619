"""`openbell backup` and `openbell restore`: while the desk works, killed, damaged, older than the home."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.operations.backup import contents, making, restoring
from openbell.desk.settings import load
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.client import OPENBELL, PATIENCE, Client, environment, run
from tests.counts import runs
from tests.prefork import Process
from tests.stores.model import assert_same
from tests.stores.samples import DAY, FILE, LIVE, MINUTE, SEPTEMBER, minutes_of, sparse
from tests.stores.samples import run as minutes
from tests.waiting import wait_for

KILLS = runs(6, soak=120)
BTC = minutes_of("BTC/USD")
REST = {"symbol": "BTC/USD", "side": "buy", "type": "limit", "quantity": "0.01", "price": "1"}


def chartgen(home: Path) -> Client:
    """A server that takes orders at any price."""
    command = [*OPENBELL, "mcp", "chartgen", "--trade"]
    client = Client(home, command=command, RISK_COLLAR="0", RISK_POSITIONS="0")
    client.initialize()
    return client


def place(client: Client, name: str) -> bool:
    """Returns True if an order was acknowledged."""
    answer = client.call("place_order", {**REST, "client_order_id": name})
    return not answer["result"].get("isError", False)


def orders_in(home: Path) -> set[str]:
    with closing(sqlite3.connect(home / "simulated" / "records.sqlite")) as db:
        return {row[0] for row in db.execute("SELECT client_order_id FROM orders")}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_backups_while_orders_are_placed_and_minutes_collected(tmp_path: Path) -> None:
    """Each holds every order that was acknowledged before it began; a restored desk goes on."""
    home = tmp_path / "home"
    acknowledged: list[str] = []
    stopped = threading.Event()
    collector = Process(
        [*OPENBELL, "collect"], env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with collector, chartgen(home) as client:

        def trade() -> None:
            while not stopped.is_set():
                name = f"order-{len(acknowledged)}"
                assert place(client, name)
                acknowledged.append(name)

        trader = threading.Thread(target=trade)
        trader.start()
        try:
            wait_for(lambda: len(acknowledged) > 3, "orders")
            before = []
            for number in range(3):
                before.append(len(acknowledged))
                done = run(home, "backup", str(tmp_path / f"copy-{number}"))
                assert done.returncode == 0, done.stderr
            wait_for(lambda: len(acknowledged) > before[-1] + 3, "orders after the backup")
        finally:
            stopped.set()
            trader.join()
            collector.kill()
    for number, count in enumerate(before):
        other = tmp_path / f"restored-{number}"
        restored = run(other, "restore", str(tmp_path / f"copy-{number}"))
        assert restored.returncode == 0, restored.stderr
        assert orders_in(other) >= set(acknowledged[:count])
    verified, checked = run(other, "verify"), run(other, "doctor")
    assert (verified.returncode, checked.returncode) == (0, 0), verified.stdout + checked.stdout
    assert verified.stdout.splitlines()[-1].removeprefix("head  ") in restored.stdout
    with chartgen(other) as client:
        assert place(client, "after-the-restore")
    assert run(other, "verify").returncode == 0


def test_bars_that_are_written_during_a_backup_are_in_it_or_gaps(tmp_path: Path) -> None:
    home = tmp_path / "home"
    symbols = ["BTC/USD", "ETH/USD", "AAPL"]
    written = dict.fromkeys(symbols, 0)
    stopped = threading.Event()

    def write() -> None:
        with closing(ParquetStore(home / "data")) as store:
            chance = random.Random(7)
            while not stopped.is_set():
                for symbol in symbols:
                    start, count = written[symbol], chance.choice([1, 60, 2500])
                    some = minutes(symbol, SEPTEMBER + start * MINUTE, count)
                    span = Span(SEPTEMBER + start * MINUTE, SEPTEMBER + (start + count) * MINUTE)
                    store.write([some], LIVE, covers=span)
                    written[symbol] += count
                store.compact(SEPTEMBER + min(written.values()) * MINUTE)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for(lambda: min(written.values()) > 6000, "bars")
        for number in range(4):
            least = dict(written)
            making.make(home, tmp_path / f"copy-{number}")
            settings = load({"OPENBELL_HOME": str(tmp_path / f"restored-{number}")})
            assert restoring.restore(settings, tmp_path / f"copy-{number}", replaces=False).losses == []
            with closing(ParquetStore(settings.home / "data")) as store:
                for symbol, count in least.items():
                    series = minutes_of(symbol)
                    until = SEPTEMBER + count * MINUTE
                    assert_same(store.read(series, SEPTEMBER, until), minutes(symbol, SEPTEMBER, count))
                    assert store.gaps(series, Span(SEPTEMBER, until)) == []
    finally:
        stopped.set()
        writer.join()


ASKED = [
    ("none", "market-data", "get_candles", {"symbol": "BTC/USD", "timeframe": "1h", "limit": 50}),
    ("none", "market-data", "get_candles", {"symbol": "BTC/USD", "timeframe": "1d"}),
    ("none", "chart-signals", "get_signals", {"symbol": "BTC/USD", "timeframe": "15min"}),
    ("none", "chart-signals", "get_storage_info", {}),
    ("sim", "chartgen", "get_orders", {}),
    ("sim", "chartgen", "get_positions", {}),
    ("sim", "chartgen", "list_alerts", {}),
]
OWN = {"_metadata", "data_directory", "total_size_mb", "server_time"}
"""What every home or call has of its own."""


def answers(home: Path) -> list[Any]:
    found = []
    for feed, server, tool, given in ASKED:
        flags = ["--trade"] if server == "chartgen" else []
        done = run(home, "call", server, tool, json.dumps(given), *flags, FEED=feed)
        payload = json.loads(done.stdout)
        assert done.returncode == 0, payload
        payload.get("data", payload).pop("as_of", None)
        found.append((tool, {name: each for name, each in payload.items() if name not in OWN}))
    return found


def test_a_restored_desk_gives_the_same_answers(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    with closing(ParquetStore(home / "data")) as store:
        store.write(
            [sparse("BTC/USD", SEPTEMBER, SEPTEMBER + 9 * DAY)], FILE, covers=Span(SEPTEMBER, SEPTEMBER + 9 * DAY)
        )
        later = Span(SEPTEMBER + 9 * DAY, SEPTEMBER + 9 * DAY + 300 * MINUTE)
        store.write([minutes("BTC/USD", later.start, 300)], FILE, covers=later)
    (home / "watchlist.txt").write_text("BTC/USD\n")
    with chartgen(home) as client:
        assert place(client, "one")
        alert = client.call("set_alert", {"symbol": "BTC/USD", "condition": {"price_above": 10_000_000}})
        assert not alert["result"]["isError"], alert
    assert run(home, "backup", str(tmp_path / "copy")).returncode == 0
    expected = answers(home)
    assert run(other, "restore", str(tmp_path / "copy")).returncode == 0
    assert answers(other) == expected
    assert (other / "watchlist.txt").read_text() == "BTC/USD\n"
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "copy").rglob("*") if path.is_file()} == {0}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup with orders and with many files."""
    folder = tmp_path_factory.mktemp("backup")
    with chartgen(folder / "home") as client:
        for number in range(3):
            assert place(client, f"first-{number}")
    with closing(ParquetStore(folder / "home" / "simulated" / "data")) as store:
        for number in range(12):
            symbol = f"{'ABCDEFGHIJKL'[number]}X/USD"
            store.write([sparse(symbol, SEPTEMBER - 40 * DAY, SEPTEMBER, number)], LIVE)
    assert run(folder / "home", "backup", str(folder / "copy")).returncode == 0
    return folder


DAMAGE: dict[str, Callable[[Path], None]] = {
    "is damaged: simulated/records.sqlite is not what was copied": lambda copy: _flip(
        copy / "simulated/records.sqlite"
    ),
    "is missing": lambda copy: (copy / "simulated" / "ledger.head").unlink(),
    "it has no manifest.json": lambda copy: (copy / "manifest.json").unlink(),
    "manifest.json is damaged": lambda copy: _flip(copy / "manifest.json"),
    "has format 0": lambda copy: _edit(copy / "manifest.json", '"format": 1', '"format": 0'),
}


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def test_a_damaged_copy_is_refused_and_nothing_is_changed(tmp_path: Path, copied: Path) -> None:
    for sentence, damage in DAMAGE.items():
        shutil.copytree(copied / "copy", tmp_path / "copy")
        damage(tmp_path / "copy")
        refused = run(tmp_path / "home", "restore", str(tmp_path / "copy"))
        assert refused.returncode == 1, sentence
        assert sentence in refused.stderr, refused.stderr
        assert "Traceback" not in refused.stderr
        assert not (tmp_path / "home").exists()
        shutil.rmtree(tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


def _link(path: Path, target: Path) -> None:
    """Put a link to the same content in place of a file or folder, so that its hash still fits."""
    shutil.move(path, target)
    path.symlink_to(target)


def _name_more(copy: Path, name: str) -> None:
    """Add a file to a backup and to its manifest, as somebody could who knows its form."""
    (copy / name).parent.mkdir(parents=True, exist_ok=True)
    (copy / name).write_text("more")
    found = contents.read_manifest(copy)
    contents.write_manifest(copy, replace(found, files={**found.files, name: contents.describe(copy / name)}))


HOSTILE: dict[str, Callable[[Path], None]] = {
    "'openbell.toml', which is a link or no file": lambda copy: (copy / "openbell.toml").symlink_to("/etc/passwd"),
    "'simulated/records.sqlite', which is a link": lambda copy: _link(
        copy / "simulated/records.sqlite", copy.parent / "elsewhere"
    ),
    "'simulated', which is a link": lambda copy: _link(copy / "simulated", copy.parent / "elsewhere"),
    "'pipe', which is a link or no file": lambda copy: os.mkfifo(copy / "pipe"),
    "'simulated/more.toml', which its manifest does not name": lambda copy: (copy / "simulated/more.toml").touch(),
    "the manifest names 'bin/sitecustomize.py', which is no file of a home": lambda copy: _name_more(
        copy, "bin/sitecustomize.py"
    ),
}


def test_attack_backup_with_links_and_files_that_nobody_copied(tmp_path: Path, copied: Path) -> None:
    for sentence, change in HOSTILE.items():
        shutil.copytree(copied / "copy", tmp_path / "copy")
        change(tmp_path / "copy")
        refused = run(tmp_path / "home", "restore", str(tmp_path / "copy"))
        assert refused.returncode == 1, sentence
        assert sentence in refused.stderr, refused.stderr
        assert "nothing was restored" in refused.stderr
        assert not (tmp_path / "home").exists()
        for each in tmp_path.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()


@pytest.mark.parametrize(
    "change",
    [{"files": None}, {"files": []}, {"files": {"records.sqlite": "x"}}, {"heads": "x"}, {"made_at": "soon"}],
)
def test_a_manifest_of_another_shape_is_refused_in_words(tmp_path: Path, copied: Path, change: dict[str, Any]) -> None:
    """Whoever writes one can also write its digest."""
    shutil.copytree(copied / "copy", tmp_path / "copy")
    body = json.loads((tmp_path / "copy" / "manifest.json").read_text()) | change
    del body["sha256"]
    digest = sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    (tmp_path / "copy" / "manifest.json").write_text(json.dumps({**body, "sha256": digest}))
    refused = run(tmp_path / "home", "restore", str(tmp_path / "copy"))
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
    assert "is no manifest of a backup" in refused.stderr
    assert not (tmp_path / "home").exists()


def test_a_home_in_use_or_with_files_is_refused(tmp_path: Path, copied: Path) -> None:
    home = tmp_path / "home"
    with chartgen(home) as client:
        place(client, "one")
        before = tree(home)
        plain = run(home, "restore", str(copied / "copy"))
        running = run(home, "restore", str(copied / "copy"), "--replace")
        assert tree(home).keys() == before.keys()
    assert "is not empty: --replace keeps it aside" in plain.stderr
    assert "is in use: stop every Openbell process" in running.stderr
    assert (plain.returncode, running.returncode) == (1, 1)
    exists = run(home, "backup", str(copied / "copy"))
    inside = run(home, "backup", str(home / "copy"))
    assert (exists.returncode, inside.returncode) == (1, 1)
    assert "give the name of a new folder" in exists.stderr
    assert "is inside the home" in inside.stderr


def test_an_older_copy_is_not_used_silently(tmp_path: Path, copied: Path) -> None:
    """The home that is replaced knows a later end of the ledger: an operator has to accept the copy."""
    home = tmp_path / "home"
    shutil.copytree(copied / "home", home)
    with chartgen(home) as client:
        assert place(client, "later")
    done = run(home, "restore", str(copied / "copy"), "--replace")
    assert done.returncode == 0, done.stderr
    assert "nothing is written to it until you accept that with openbell verify --adopt" in done.stdout
    (aside,) = tmp_path.glob("home.before-restore-*")
    assert "later" in orders_in(aside)
    assert "its end is cut off" in run(home, "verify").stdout
    assert run(home, "doctor").returncode == 1
    with chartgen(home) as client:
        assert not place(client, "refused")
    assert run(home, "verify", "--adopt").returncode == 1  # it names the fault that it accepts
    with chartgen(home) as client:
        assert place(client, "accepted")
    assert run(home, "verify").returncode == 0
    assert orders_in(home) == {"first-0", "first-1", "first-2", "accepted"}


def test_a_halted_home_stays_halted(tmp_path: Path, copied: Path) -> None:
    """Only `openbell resume` ends a halt, not a copy from before it."""
    home = tmp_path / "home"
    shutil.copytree(copied / "home", home)
    assert run(home, "halt", "--reason", "fat fingers").returncode == 0
    done = run(home, "restore", str(copied / "copy"), "--replace")
    assert "is halted (fat fingers), and stays so: openbell resume ends it" in done.stdout
    run(home, "verify", "--adopt")
    with chartgen(home) as client:
        assert not place(client, "halted")
    assert run(home, "resume").returncode == 0
    with chartgen(home) as client:
        assert place(client, "resumed")
    assert run(home, "verify").returncode == 0


def test_a_ledger_that_does_not_fit_its_head_is_not_copied(tmp_path: Path, copied: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(copied / "home", home)
    with closing(sqlite3.connect(home / "simulated" / "records.sqlite")) as db:
        db.execute("DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger)")
        db.commit()
    refused = run(home, "backup", str(tmp_path / "copy"))
    assert refused.returncode == 1
    assert "does not fit its head" in refused.stderr
    assert not (tmp_path / "copy").exists()


def test_webhooks_are_left_out(tmp_path: Path, copied: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(copied / "home", home)
    with closing(sqlite3.connect(home / "simulated" / "records.sqlite")) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(webhooks)")]
        db.execute(
            f"INSERT INTO webhooks VALUES ({','.join('?' * len(columns))})", ["SECRET-OF-A-WEBHOOK"] * len(columns)
        )
        db.commit()
    assert run(home, "backup", str(tmp_path / "copy")).returncode == 0
    assert not any(b"SECRET-OF-A-WEBHOOK" in content for content in tree(tmp_path / "copy").values())


def test_what_is_in_other_databases_is_named_with_its_commands(tmp_path: Path, copied: Path) -> None:
    elsewhere = {"DATABASE_URL": "postgresql://u:hidden@127.0.0.1:1/x", "INFLUX_URL": "http://127.0.0.1:1"}
    done = run(copied / "home", "backup", str(tmp_path / "copy"), INFLUX_TOKEN="u:hidden", **elsewhere)
    assert done.returncode == 0, done.stderr
    assert "pg_dump" in done.stdout
    assert "influxd backup -portable -database " in done.stdout
    assert "hidden" not in done.stdout


def killed(home: Path, words: list[str], begun: Any, chance: random.Random) -> None:
    """Start a command and kill it at some moment after it has begun to write."""
    with Process([*OPENBELL, *words], env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline, least = time.monotonic() + PATIENCE, chance.choice([0, 1, 5, 11])
        while process.poll() is None and not begun(least):
            assert time.monotonic() < deadline, "nothing was written"
        process.kill()
        process.communicate()


def files_in(folder: Path, pattern: str) -> int:
    return sum(
        name.endswith(".parquet") for each in folder.glob(pattern) for *_, names in os.walk(each) for name in names
    )


def test_a_backup_that_is_killed_leaves_nothing_to_restore(disk_path: Path, copied: Path) -> None:
    chance, interrupted = random.Random(3), 0
    for _ in range(KILLS):
        target = disk_path / "copy"
        killed(copied / "home", ["backup", str(target)], lambda least: files_in(disk_path, "copy*") > least, chance)
        for left in disk_path.iterdir():
            if left != target:
                interrupted += 1
                refused = run(disk_path / "home", "restore", str(left))
                assert refused.returncode == 1 or (left / "manifest.json").exists()
                assert refused.returncode == 0 or not (disk_path / "home").exists()
                shutil.rmtree(disk_path / "home", ignore_errors=True)
        if target.exists():  # it was complete
            shutil.rmtree(target)
    assert interrupted
    assert run(copied / "home", "backup", str(disk_path / "copy")).returncode == 0
    assert [each.name for each in disk_path.iterdir()] == ["copy"]
    assert run(disk_path / "home", "restore", str(disk_path / "copy")).returncode == 0


def test_a_restore_that_is_killed_leaves_the_old_home_or_the_new_one(disk_path: Path, copied: Path) -> None:
    chance, interrupted = random.Random(4), 0
    home = disk_path / "home"
    for _ in range(KILLS):
        home.mkdir()
        (home / "watchlist.txt").write_text("AAPL\n")
        killed(
            home,
            ["restore", str(copied / "copy"), "--replace"],
            lambda least: files_in(disk_path, "home.*") > least,
            chance,
        )
        asides = list(disk_path.glob("home.before-restore-*"))
        if asides and home.exists():
            assert run(home, "verify").returncode == 0
        else:
            interrupted += 1
            (old,) = asides or [home]
            assert tree(old) == {"watchlist.txt": b"AAPL\n"}
        again = run(home, "restore", str(copied / "copy"), "--replace")
        assert again.returncode == 0, again.stderr
        assert run(home, "verify").returncode == 0
        assert not list(disk_path.glob("home.restoring-*"))
        for left in disk_path.iterdir():
            shutil.rmtree(left)
    assert interrupted


def test_a_full_disk_fails_with_a_sentence(tmp_path: Path, copied: Path) -> None:
    import resource

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    done = subprocess.run(
        [*OPENBELL, "backup", str(tmp_path / "copy")],
        check=False,
        # Byte code would be cut off at the limit, for every later process.
        env=environment(copied / "home") | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=little,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("openbell: cannot ")
    assert os.listdir(tmp_path) == []


def test_two_restores_in_one_second_keep_both_old_homes(tmp_path: Path, copied: Path) -> None:
    settings = load({"OPENBELL_HOME": str(tmp_path / "home")})
    for _ in range(4):
        restoring.restore(settings, copied / "copy", replaces=True)
    assert len(list(tmp_path.glob("home.before-restore-*"))) == 3


def test_of_restores_at_the_same_time_one_works_and_the_others_change_nothing(tmp_path: Path, copied: Path) -> None:
    for round_ in range(3):
        home = tmp_path / f"{round_}" / "home"
        words = [*OPENBELL, "restore", str(copied / "copy")]
        pipe = subprocess.PIPE
        started = [Process(words, env=environment(home), text=True, stdout=pipe, stderr=pipe) for _ in range(3)]
        ended = [(*process.communicate(timeout=PATIENCE), process.wait()) for process in started]
        assert [code for *_, code in ended].count(0) == 1, ended
        refusals = [errors for _, errors, code in ended if code]
        assert all("another restore is under way" in each or "is not empty" in each for each in refusals), refusals
        assert [path.name for path in home.parent.iterdir()] == ["home"]
        assert run(home, "verify").returncode == 0
        assert orders_in(home) == orders_in(copied / "home")


def test_records_that_are_gone_are_neither_copied_nor_called_new(tmp_path: Path, copied: Path) -> None:
    home = tmp_path / "home"
    assert run(home, "restore", str(copied / "copy")).returncode == 0
    (records,) = home.rglob("records.sqlite")
    for file in records.parent.glob("records.sqlite*"):
        file.unlink()
    done = run(home, "backup", str(tmp_path / "empty"))
    assert (done.returncode, "is missing, and its ledger had" in done.stderr) == (1, True), done.stderr
    assert not (tmp_path / "empty").exists()
    checked = run(home, "doctor")
    assert (checked.returncode, "is missing, and its ledger had" in checked.stdout) == (1, True), checked.stdout
