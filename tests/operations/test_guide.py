"""The steps of docs/operations.md, taken from the page and run: roles and grants, two machines, backup and restore."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path

import pytest
import sqlalchemy

from openbell.desk.settings import load
from tests.client import run
from tests.stores.influx_server import InfluxServer
from tests.stores.influx_server import NotHere as NoInflux
from tests.stores.records.postgres_server import NotHere as NoPostgres
from tests.stores.records.postgres_server import PostgresServer, programs

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "operations.md").read_text()
ADMIN = "admin:all-of-it"
ORDER = json.dumps({"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"})


def block(kind: str) -> str:
    """The one block of the guide with this language."""
    (found,) = re.findall(rf"```{kind}\n(.*?)```", GUIDE, re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def influx() -> Iterator[InfluxServer]:
    try:
        server = InfluxServer(admin=ADMIN)
    except NoInflux as error:
        pytest.skip(f"NOT TESTED: {error}")
    yield server
    server.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
    except NoPostgres as error:
        pytest.skip(f"NOT TESTED: {error}")
    yield server
    server.close()


def test_a_desk_with_the_rights_of_the_guide_works_on_two_machines(
    tmp_path: Path, postgres: PostgresServer, influx: InfluxServer
) -> None:
    # The server of the tests belongs to a role of that name.
    statements = block("sql").replace("ROLE openbell", "ROLE keeper").replace("OWNER openbell", "OWNER keeper")
    for statement in filter(None, map(str.strip, statements.split(";"))):
        postgres.ask(statement)
    for query in block("influxql").replace('"openbell"', '"openbell_simulated_7"').splitlines():
        assert "error" not in json.dumps(influx.query(query)), query
    settings = tomllib.loads(block("toml"))
    password = sqlalchemy.make_url(settings["database_url"]).password
    given = {
        "FEED": "sim",
        "DATABASE_URL": f"postgresql://keeper:{password}@127.0.0.1:{postgres.port}/openbell",
        "INFLUX_URL": influx.url,
        "INFLUX_TOKEN": settings["influx_token"],
    }
    first, second = tmp_path / "first", tmp_path / "second"

    placed = run(first, "call", "chartgen", "place_order", ORDER, "--trade", **given)
    assert placed.returncode == 0, placed.stdout
    healthy = run(first, "doctor", **given)
    assert healthy.returncode == 0, healthy.stdout

    refused = run(second, "call", "chartgen", "place_order", ORDER, "--trade", **given)
    assert refused.returncode == 1
    assert "verify --adopt" in refused.stdout
    checked = run(first, "verify", **given)
    head = checked.stdout.rpartition("head  ")[2].strip()
    wrong = run(second, "verify", "--adopt", "--head", head[:-1] + ("0" if head[-1] != "0" else "1"), **given)
    assert wrong.returncode == 1, wrong.stdout
    adopted = run(second, "verify", "--adopt", "--head", head, **given)
    assert (checked.returncode, adopted.returncode) == (0, 0), adopted.stdout + adopted.stderr
    sold = run(second, "call", "chartgen", "place_order", ORDER.replace("0.01", "0.02"), "--trade", **given)
    assert sold.returncode == 0, sold.stdout


def test_a_copy_is_restored_and_checked_in_the_order_of_the_guide(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    assert run(home, "call", "chartgen", "place_order", ORDER, "--trade").returncode == 0
    assert run(home, "backup", str(copy)).returncode == 0
    assert run(home, "call", "chartgen", "place_order", ORDER.replace("0.01", "0.02"), "--trade").returncode == 0
    assert run(home, "restore", str(copy), "--replace").returncode == 0
    older = run(home, "verify")
    assert older.returncode == 1, older.stdout
    assert "the ledger was accepted as it is" in run(home, "verify", "--adopt").stdout
    for words in (("verify",), ("doctor",), ("doctor", "--mend")):
        done = run(home, *words)
        assert done.returncode == 0, (words, done.stdout)


def test_the_settings_and_the_unit_of_the_guide_are_valid(tmp_path: Path) -> None:
    authority = tmp_path / "db.pem"
    authority.touch()
    for name, value in tomllib.loads(block("toml").replace("/etc/ssl/db.pem", str(authority))).items():
        assert getattr(load({"OPENBELL_HOME": str(tmp_path), f"OPENBELL_{name.upper()}": value}), name) == value
    unit = RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block("ini"))
    service = unit["Service"]
    program, *words = service["ExecStart"].split()
    assert program.endswith("/openbell")
    assert run(tmp_path, *words, "--help").returncode == 0
    given = dict(each.split("=", 1) for each in service["Environment"].split())
    assert load(given).log_format == "json"


def test_records_are_restored_from_a_dump_and_a_removed_token_stays_removed(tmp_path: Path, database: str) -> None:
    def openbell(*words: str) -> str:
        done = run(tmp_path / "home", *words, FEED="none", DATABASE_URL=database)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def postgres(command: str, *words: str) -> None:
        program, *given = shlex.split(command)
        subprocess.run([programs() / program, *given, *words], check=True, capture_output=True, timeout=60)

    dump = str(tmp_path / "records.dump")
    found = {name: re.search(rf"`({name} [^`]+)`", GUIDE) for name in ("pg_dump", "pg_restore")}
    assert found["pg_dump"] and found["pg_restore"]
    for name in ("kept", "removed"):
        openbell("token", "add", name, "--scopes", "read")
    openbell("account", "add", "before")
    postgres(found["pg_dump"][1], "--file", dump, database)
    openbell("token", "remove", "removed")
    openbell("account", "add", "after")
    postgres(found["pg_restore"][1], "--dbname", database, dump)
    run(tmp_path / "home", "verify", "--adopt", FEED="none", DATABASE_URL=database)
    openbell("verify")
    accounts, tokens = openbell("account", "list"), openbell("token", "list")
    assert "before" in accounts
    assert "after" not in accounts
    assert "kept" in tokens
    assert "removed" not in tokens
