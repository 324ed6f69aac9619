"""Every declared error code of every tool, provoked for real and read as the user of another's client reads it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path

import pytest

from openbell.servers import NAMES, load
from tests.client import run
from tests.gateway.clients import environments
from tests.gateway.clients.connections import (
    ERAS,
    FIRST,
    Answered,
    Asked,
    Connection,
    Seen,
    alone,
    ask,
    gateway,
    here,
    on_stdio,
)
from tests.gateway.clients.provocations import (
    DESKS,
    OVER_HTTP,
    TEXT,
    VENDOR,
    Provocation,
    declared,
    provocations,
)
from tests.launching import loaded
from tests.npm import programs

HERE = Path(__file__).resolve().parent
DAYS = 600


def test_every_declared_code_of_every_tool_is_provoked() -> None:
    provoked = defaultdict(set)
    for each in provocations():
        provoked[each.server, each.tool].add(each.code)
    missing = [
        (server, tool.name, code)
        for server in NAMES
        for tool in load(server).tools
        for code in declared(load(server), tool) - provoked[server, tool.name]
    ]
    assert missing == []
    assert all(provoked[server, tool.name] for server in NAMES for tool in load(server).tools)


def stored(home: Path) -> None:
    """Minutes of one stock on a day of last year, which is not watched, and days of a coin."""
    minutes = [f"{1758288600 + 60 * n},100,101,99,100,5" for n in range(200)]
    days = [
        f"{date(2023, 1, 1) + timedelta(n)},{100 + n % 9},{102 + n % 9},{98 + n % 9},{100 + n % 9},5"
        for n in range(DAYS)
    ]
    for symbol, time, rows in (("AAPL", "timestamp", minutes), ("BTC/USD", "date", days)):
        file = home / "bars.csv"
        file.write_text("\n".join([f"{time},open,high,low,close,volume", *rows]) + "\n")
        done = run(home, "import", str(file), "--symbol", symbol, FEED="none")
        assert done.returncode == 0, done.stderr
    assert run(home, "watch", "remove", "AAPL", FEED="none").returncode == 0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Connection]]:
    """Each server of each desk with the calls that fail there."""
    homes = {desk: tmp_path_factory.mktemp("home") for desk in DESKS}
    stored(homes["stored"])
    assert run(homes["guarded"], "account", "add", "guarded", FEED="sim").returncode == 0
    assert run(homes["guarded"], "account", "token", "guarded", FEED="sim").returncode == 0
    asked: dict[tuple[str, str], list[Asked]] = defaultdict(list)
    for each in provocations():
        asked[each.desk, each.server].append(Asked(tool=each.tool, arguments=each.arguments))
    with ExitStack() as stack:
        gateways = {desk: stack.enter_context(gateway(homes[desk], **DESKS[desk])) for desk in OVER_HTTP}
        found = {}
        for (desk, name), calls in asked.items():
            command, handed = on_stdio(name, homes[desk], **DESKS[desk])
            up = gateways.get(desk)
            found[desk, name] = Connection(
                name=f"{desk}/{name}",
                command=loaded(command if desk != "read-only" else command[:-1]),
                environment={**handed, **VENDOR},
                url=up.url(name) if up else "",
                token=up.token if up else "",
                routes=[],
                calls=calls,
            )
        yield found


def check(found: list[Seen]) -> None:
    """Each call has failed with the code and a message that its user can read."""
    wanted: dict[str, list[Provocation]] = defaultdict(list)
    for each in provocations():
        wanted[f"{each.desk}/{each.server}"].append(each)
    wrong = [
        (seen["era"], seen["transport"], provocation, answer)
        for seen in found
        for provocation, answer in zip(wanted[seen["name"]], seen["answers"], strict=True)
        if code_of(answer) != provocation.code
    ]
    assert not wrong, "\n".join(map(str, wrong))


def code_of(answer: Answered) -> str | int | None:
    """The code of an error as an agent finds it; None if there is no error, or no message."""
    if not answer["is_error"] or not answer["text"].strip():
        return None
    if answer["code"] is not None:
        return answer["code"]
    try:
        body = json.loads(answer["text"])
    except ValueError:
        return TEXT
    if "success" in body:
        return TEXT if body["error"] else None
    error = body.get("error", body)
    code: str = error.get("code") or error["type"]
    return code if error["message"] else None


def routed(servers: dict[tuple[str, str], Connection], eras: list[str]) -> list[Connection]:
    """Every server over stdio in one era, and over HTTP in both, if its desk can.

    Over stdio the eras take turns. Version 1 of the TypeScript SDK sees every call of the desks that serve HTTP.
    """
    found = []
    for number, ((desk, _), each) in enumerate(servers.items()):
        is_served = desk in OVER_HTTP
        era = FIRST if is_served and FIRST in eras else eras[number % len(eras)]
        routes = [("stdio", era), *(("http", era) for era in ERAS if is_served)]
        found.append(Connection(**{**each, "routes": routes}))
    return found


def test_both_versions_of_the_typescript_sdk_show_every_error(
    tmp_path: Path, servers: dict[tuple[str, str], Connection]
) -> None:
    sdk = here(programs.folder, "typescript-sdk")
    command = [str(programs.node()), str(HERE / "typescript_client.cjs"), str(sdk)]
    check(ask(command, routed(servers, [FIRST, *ERAS]), alone(tmp_path)))


def test_pydantic_ai_shows_every_error(tmp_path: Path, servers: dict[tuple[str, str], Connection]) -> None:
    python = here(environments.python, HERE / "pydantic-ai.lock")
    check(ask([str(python), str(HERE / "pydantic_ai_client.py")], routed(servers, list(ERAS)), alone(tmp_path)))
