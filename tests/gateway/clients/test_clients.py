"""Real clients, without an account and without a network, connect to every server over stdio and HTTP."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openbell.servers import NAMES, load
from tests.gateway.clients import environments
from tests.gateway.clients.connections import (
    CALLS,
    ERAS,
    FIRST,
    PATIENCE,
    Connection,
    Gateway,
    alone,
    ask,
    check,
    connections,
    gateway,
    here,
    import_bars,
)
from tests.npm import programs

HERE = Path(__file__).resolve().parent
WRONG = "with-a-wrong-token"
_COLOUR = re.compile(r"\x1b\[[\d;]*[A-Za-z]|\x1b\][^\x07]*\x07")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    home = tmp_path_factory.mktemp("home")
    import_bars(home)
    with gateway(home) as found:
        yield found


def output(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    """What a program prints, without its colours."""
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return _COLOUR.sub("", done.stdout)


def wanted() -> dict[str, bool]:
    """Whether each configured server must connect: all over both transports, and one that refuses the token."""
    return {f"{name}-{transport}": True for name in NAMES for transport in ("stdio", "http")} | {WRONG: False}


def test_both_versions_of_the_typescript_sdk_list_and_call_tools(tmp_path: Path, up: Gateway) -> None:
    sdk = here(programs.folder, "typescript-sdk")
    servers = connections(up, [FIRST, *ERAS])
    command = [str(programs.node()), str(HERE / "typescript_client.cjs"), str(sdk)]
    check(ask(command, servers, alone(tmp_path)), servers)


def test_pydantic_ai_lists_and_calls_tools_in_both_eras(tmp_path: Path, up: Gateway) -> None:
    python = here(environments.python, HERE / "pydantic-ai.lock")
    servers = connections(up, list(reversed(ERAS)))
    check(ask([str(python), str(HERE / "pydantic_ai_client.py")], servers, alone(tmp_path)), servers)


def test_opencode_connects_to_every_server(tmp_path: Path, up: Gateway) -> None:
    opencode = here(programs.binary, "opencode", "opencode-linux-x64-baseline/bin/opencode")
    servers = connections(up, list(ERAS))
    (tmp_path / "opencode.json").write_text(json.dumps({"mcp": opencode_servers(servers)}))
    without = ("AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD")
    variables = alone(tmp_path, **{f"OPENCODE_DISABLE_{each}": "1" for each in without})
    said = output([opencode, "mcp", "list", "--pure"], tmp_path, variables)
    found = {name: mark == "✓" for mark, name in re.findall(r"^●  (\S) (\S+) (?:connected|failed)", said, re.MULTILINE)}
    assert found == wanted(), said


def opencode_servers(servers: list[Connection]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in servers:
        found[f"{each['name']}-stdio"] = {
            "type": "local",
            "command": each["command"],
            "environment": each["environment"],
            "timeout": PATIENCE * 1000,
        }
        found[f"{each['name']}-http"] = opencode_remote(each["url"], each["token"])
    return {**found, WRONG: opencode_remote(servers[0]["url"], "wrong")}


def opencode_remote(url: str, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    return {"type": "remote", "url": url, "headers": headers, "oauth": False, "timeout": PATIENCE * 1000}


def test_claude_code_connects_to_every_server(tmp_path: Path, up: Gateway) -> None:
    systems = ("linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64")
    claude = here(programs.binary, "claude-code", *(f"@anthropic-ai/claude-code-{each}/claude" for each in systems))
    servers = connections(up, list(ERAS))
    variables = alone(
        tmp_path,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
        MCP_TIMEOUT=f"{PATIENCE * 1000:.0f}",
    )
    one = servers[0]
    settings = [word for key, value in one["environment"].items() for word in ("-e", f"{key}={value}")]
    adds = [
        [f"{one['name']}-stdio", *settings, "--", *one["command"]],
        ["--transport", "http", f"{one['name']}-http", one["url"], "--header", f"Authorization: Bearer {up.token}"],
    ]
    for words in adds:
        output([claude, "mcp", "add", "--scope", "user", *words], tmp_path, variables)
    add_the_others(tmp_path / ".claude.json", servers)
    said = output([claude, "mcp", "list"], tmp_path, variables)
    found = {name: mark == "✔" for name, mark in re.findall(r"^(\S+): .* - (\S) ", said, re.MULTILINE)}
    assert found == wanted(), said


def add_the_others(file: Path, servers: list[Connection]) -> None:
    """Add what `mcp add` writes for each further server, without starting the program for each."""
    settings = json.loads(file.read_text())
    first, known = servers[0], settings["mcpServers"]
    stdio, http = known[f"{first['name']}-stdio"], known[f"{first['name']}-http"]
    assert stdio["env"] == first["environment"]
    assert http["headers"] == {"Authorization": f"Bearer {first['token']}"}
    for each in servers[1:]:
        program, *words = each["command"]
        known[f"{each['name']}-stdio"] = {**stdio, "command": program, "args": words}
        known[f"{each['name']}-http"] = {**http, "url": each["url"]}
    known[WRONG] = {**http, "headers": {"Authorization": "Bearer wrong"}}
    file.write_text(json.dumps(settings))


@pytest.mark.parametrize(("name", "era"), [("market-data", "legacy"), ("chartgen", "modern")])
def test_the_inspector_lists_and_calls_tools_over_http_in_both_eras(
    tmp_path: Path, up: Gateway, name: str, era: str
) -> None:
    inspector = here(programs.command, "inspector", "mcp-inspector")
    compiled = str(programs.CACHE / "inspector" / "compiled")
    variables = alone(tmp_path, MCP_CATALOG_PATH=str(tmp_path / "catalogue.json"), NODE_COMPILE_CACHE=compiled)
    tool, arguments, _ = CALLS[name]
    connect = [up.url(name), "--transport", "http"]
    connect += ["--header", f"Authorization: Bearer {up.token}"]
    shared = [*inspector, "--cli", *connect, "--protocol-era", era]
    listed = subprocess.run(
        [*shared, "--method", "tools/list", "--strict"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (listed.returncode, listed.stderr) == (0, "")
    assert [each["name"] for each in json.loads(listed.stdout)["tools"]] == list(load(name).by_name)
    called = [*shared, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
    result = json.loads(output(called, tmp_path, variables))
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
