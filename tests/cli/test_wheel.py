"""What the built wheel installs: its commands, in an environment of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

import pytest

from tests.client import PATIENCE, Client, environment

ROOT = Path(__file__).resolve().parents[2]
# As the contract of chartgen shows it, with the path of the program.
CONFIG = """{ "mcpServers": { "chartgen": { "command": "/path/to/chartgen", "args": ["--mcp"] } }}"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment with the wheel, whose dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE)
    (wheel,) = folder.glob("openbell-*.whl")
    install = [sys.executable, str(ROOT / ".ci" / "install.py"), "--new", str(folder / "env"), "--no-deps", str(wheel)]
    assert subprocess.run(install, capture_output=True, text=True, timeout=PATIENCE, check=False).returncode == 0
    python = folder / "env" / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    # Behind the wheel's own packages, so that the wheel's openbell is the one that is loaded.
    (Path(packages) / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def test_the_configuration_of_chartgens_contract_starts_its_server(programs: Path, tmp_path: Path) -> None:
    entry = json.loads(CONFIG.replace("/path/to", str(programs)))["mcpServers"]["chartgen"]
    with Client(tmp_path, command=[entry["command"], *entry["args"]]) as client:
        client.initialize()
        tools = {tool["name"] for tool in client.request("tools/list")["result"]["tools"]}
        orders = client.request("tools/call", {"name": "get_orders", "arguments": {}})["result"]
    assert len(tools) == 15
    assert {"generate_chart", "place_order", "list_subscriptions"} <= tools
    assert orders["isError"]
    assert "--trade" in orders["content"][0]["text"]


def test_chartgen_trades_with_trade(programs: Path, tmp_path: Path) -> None:
    with Client(tmp_path, command=[str(programs / "chartgen"), "--mcp", "--trade"]) as client:
        client.initialize()
        orders = client.request("tools/call", {"name": "get_orders", "arguments": {}})["result"]
    assert not orders.get("isError"), orders


def test_chartgen_serves_over_http(programs: Path, tmp_path: Path) -> None:
    command = [str(programs / "chartgen"), "--serve", "--trade"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment(tmp_path), stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as desk:
        try:
            assert desk.stdout
            address = next(found[0] for line in desk.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
            with urllib.request.urlopen(f"{address}/healthz", timeout=PATIENCE) as answer:
                assert answer.status == 200
        finally:
            desk.kill()


@pytest.mark.parametrize("words", [[], ["--trade"], ["--mcp", "--serve"]], ids=["nothing", "trade", "both"])
def test_chartgen_names_its_modes(programs: Path, words: list[str], tmp_path: Path) -> None:
    command = [str(programs / "chartgen"), *words]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "give one of --mcp and --serve" in done.stderr
    done = subprocess.run([command[0], "--help"], capture_output=True, text=True, check=True)
    assert "openbell mcp chartgen" in done.stdout
