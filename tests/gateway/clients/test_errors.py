"""Every declared error code of every tool, provoked for real and read as the user of another's client reads it."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
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
    MESSAGES,
    SENTENCES,
    VENDOR,
    Provocation,
    declared,
    planned,
    provocations,
)
from tests.launching import loaded
from tests.npm import programs
from tests.servers.chart_img_server import ChartImgServer, message
from tests.servers.quotes_server import QuotesServer

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
def outside() -> Iterator[dict[str, dict[str, str]]]:
    """The variables of the desks that ask servers of others, which all fail."""
    with QuotesServer() as api, ChartImgServer() as refuses, ChartImgServer() as busy:

        async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(planned(api.seen[-1].target))
            await writer.drain()

        api.plan = answer
        refuses.always, busy.always = message(401, "no"), message(429, "no", Retry_After="7")
        found = {desk: dict(VENDOR) for desk in DESKS}
        found["of a quotes API"]["OPENBELL_ARCHE_URL"] = api.url
        for desk, vendor in (("of a vendor that refuses", refuses), ("of a vendor that is busy", busy)):
            urls = dict.fromkeys(("OPENBELL_CHART_IMG_URL", "OPENBELL_CHART_IMG_DOCS_URL"), vendor.url)
            found[desk] |= {"CHART_IMG_API_KEY": "key", **urls}
        yield found


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, outside: dict[str, dict[str, str]]
) -> Iterator[dict[tuple[str, str], Connection]]:
    """Each server of each desk with the calls that fail there."""
    homes = {desk: tmp_path_factory.mktemp("home") for desk in DESKS}
    stored(homes["stored"])
    (homes["broken"] / "records.sqlite").write_bytes(b"no database" * 1000)
    assert run(homes["guarded"], "account", "add", "guarded", FEED="sim").returncode == 0
    assert run(homes["guarded"], "account", "token", "guarded", FEED="sim").returncode == 0
    asked: dict[tuple[str, str], list[Asked]] = defaultdict(list)
    for each in provocations():
        asked[each.desk, each.server].append(Asked(tool=each.tool, arguments=each.arguments))
    with ExitStack() as stack:
        gateways = {}
        for desk, settings in DESKS.items():
            flags = () if desk == "read-only" else ("--trade",)
            gateways[desk] = stack.enter_context(gateway(homes[desk], flags, outside[desk], **settings))
        found = {}
        for (desk, name), calls in asked.items():
            command, handed = on_stdio(name, homes[desk], **DESKS[desk])
            up = gateways[desk]
            found[desk, name] = Connection(
                name=f"{desk}/{name}",
                command=loaded(command if desk != "read-only" else command[:-1]),
                environment={**handed, **outside[desk]},
                url=up.url(name),
                token=up.token,
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
        if not is_read(answer, provocation.code)
    ]
    assert not wrong, "\n".join(map(str, wrong))


def is_read(answer: Answered, wanted: str | int) -> bool:
    """True if an agent finds the code and a message, or the sentence of an error without a code, as text alone.

    Version 1 of the TypeScript SDK throws its own error instead, if there is structuredContent; later clients would not.
    """
    if not answer["is_error"] or answer["structured"] or not answer["text"].strip():
        return False
    if answer["code"] is not None:
        # Clients put the name and the code of the error before the message, but nothing else.
        message = rf"(MCP error {wanted}: )?({MESSAGES.get(answer['code'], '(?!)')})"
        return answer["code"] == wanted and re.match(message, answer["text"]) is not None
    try:
        body = json.loads(answer["text"])
    except ValueError:
        body = {"success": False, "error": answer["text"]}
    if "success" in body:
        said = [body["error"], *(each["message"] for each in body.get("details", ()))]
        return any(re.search(SENTENCES[str(wanted)], each) for each in said)
    error = body.get("error", body)
    return bool(error["message"]) and wanted in {error.get("code"), error.get("type")}


def test_a_clients_own_complaint_about_a_result_is_no_error_of_the_tool() -> None:
    """The TypeScript SDK throws it with the code of invalid arguments."""

    def read(text: str) -> bool:
        return is_read(Answered(is_error=True, text=text, structured=False, code=-32602), -32602)

    own = (
        "MCP error -32602: Structured content does not match the tool's output schema: data should NOT have additional"
    )
    assert not read(own)
    assert read("MCP error -32602: Invalid params: an_argument_that_no_tool_has is not an argument of this tool")
    assert read("Unknown tool: no_such_tool; there are get_candles")


def routed(servers: dict[tuple[str, str], Connection], eras: Sequence[str]) -> list[Connection]:
    """Every server over stdio and over HTTP, in each of these eras."""
    routes = [(transport, era) for transport in ("stdio", "http") for era in eras]
    return [Connection(**{**each, "routes": routes}) for each in servers.values()]


def test_both_versions_of_the_typescript_sdk_show_every_error(
    tmp_path: Path, servers: dict[tuple[str, str], Connection]
) -> None:
    sdk = here(programs.folder, "typescript-sdk")
    command = [str(programs.node()), str(HERE / "typescript_client.cjs"), str(sdk)]
    check(ask(command, routed(servers, (FIRST, "modern")), alone(tmp_path)))


def test_pydantic_ai_shows_every_error(tmp_path: Path, servers: dict[tuple[str, str], Connection]) -> None:
    python = here(environments.python, HERE / "pydantic-ai.lock")
    check(ask([str(python), str(HERE / "pydantic_ai_client.py")], routed(servers, tuple(ERAS)), alone(tmp_path)))
