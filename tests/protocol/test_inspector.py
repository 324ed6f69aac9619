"""The official MCP inspector has nothing to say against the tools of any server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from openbell.servers import NAMES, load
from tests.client import OPENBELL, PATIENCE, environment
from tests.launching import loaded
from tests.npm import programs

# A server whose schema has what the inspector warns of.
LESS_PORTABLE = """
import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def list_tools(context, params):
    schema = {"type": "object", "properties": {"size": {"type": ["number", "null"]}}}
    return types.ListToolsResult(tools=[types.Tool(name="measure", description="Measures.", input_schema=schema)])

async def main():
    server = Server("less portable", on_list_tools=list_tools)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""


@pytest.fixture(scope="session")
def inspector() -> list[str]:
    try:
        return programs.command("inspector", "mcp-inspector")
    except programs.NotHere as missing:
        pytest.skip(f"NOT TESTED: {missing}")


def listed(inspector: list[str], home: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """What the inspector says about the tools of a server."""
    # Its own catalogue of servers would be in the user's home.
    variables = {**environment(home), "HOME": str(home), "MCP_CATALOG_PATH": str(home / "catalogue.json")}
    variables["NODE_COMPILE_CACHE"] = str(programs.CACHE / "inspector" / "compiled")
    # It hands few variables on to a server by itself.
    handed = [f"-e{name}={value}" for name, value in variables.items() if name.startswith(("OPENBELL_", "PYTHON"))]
    return subprocess.run(
        [*inspector, "--cli", *command, *handed, "--method", "tools/list", "--strict", "--connect-timeout", "60000"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("name", NAMES)
def test_no_server_is_warned_of(inspector: list[str], tmp_path: Path, name: str) -> None:
    command = [*OPENBELL, "mcp", name, "--trade"]
    done = listed(inspector, tmp_path, command if name == next(iter(NAMES)) else loaded(command))
    assert done.returncode == 0
    assert done.stderr == ""
    assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == list(load(name).by_name)


def test_the_inspector_does_warn(inspector: list[str], tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(LESS_PORTABLE)
    done = listed(inspector, tmp_path, [sys.executable, str(script)])
    assert 'Warning: tool "measure"' in done.stderr
    assert "inputSchema.properties.size" in done.stderr
