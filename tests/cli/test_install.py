"""`openbell install` on configurations as people have them, on every system."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.cli.client_config import CLIENTS, Machine, Server, changed, file_of, write
from openbell.market.errors import Refused
from tests.cli.in_process import command

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
PROGRAM = str(Path(sys.executable).with_name("openbell"))
SERVER = Server("openbell-chartgen", ["/bin/openbell", "mcp", "chartgen"], {})
ENTRIES: dict[str, dict[str, Any]] = {
    "claude-desktop": {"mcpServers": {"command": PROGRAM, "args": ["mcp", "chartgen"]}},
    "claude-code": {"mcpServers": {"type": "stdio", "command": PROGRAM, "args": ["mcp", "chartgen"]}},
    "cursor": {"mcpServers": {"command": PROGRAM, "args": ["mcp", "chartgen"]}},
    "vscode": {"servers": {"type": "stdio", "command": PROGRAM, "args": ["mcp", "chartgen"]}},
    "opencode": {"mcp": {"type": "local", "command": [PROGRAM, "mcp", "chartgen"]}},
}
"""By client: the key of its servers, and the entry."""
PLACES = {
    "claude-desktop": (
        "Library/Application Support/Claude/claude_desktop_config.json",
        ".config/Claude/claude_desktop_config.json",
        "AppData/Roaming/Claude/claude_desktop_config.json",
    ),
    "claude-code": (".claude.json", ".claude.json", ".claude.json"),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": (
        "Library/Application Support/Code/User/mcp.json",
        ".config/Code/User/mcp.json",
        "AppData/Roaming/Code/User/mcp.json",
    ),
    "opencode": tuple([".config/opencode/opencode.json"] * 3),
}
"""By client: on macOS, Linux and Windows."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user without any client."""
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in [each for each in os.environ if each.startswith(("OPENBELL_", "ALPACA_", "CHART_IMG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def install(home: Path, *words: str, code: int = 0) -> str:
    """Runs the command; returns what it printed. The home of the desk is in the entries."""
    ended, out, errors = command(home / "desk", "install", *words)
    assert ended == code, out + errors
    return out + errors


@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_has_its_own_file_and_form(home: Path, client: str) -> None:
    for system, place in zip(("darwin", "linux", "win32"), PLACES[client], strict=True):
        assert file_of(CLIENTS[client], Machine(system, home, {})) == home / place
    path = file_of(CLIENTS[client], Machine(sys.platform, home, {}))
    install(home, client, "--server", "chartgen", "--yes")
    ((key, entry),) = ENTRIES[client].items()
    environ = "environment" if client == "opencode" else "env"
    wanted = entry | {environ: {"OPENBELL_HOME": str(home / "desk")}}
    assert json.loads(path.read_text()) == {key: {"openbell-chartgen": wanted}}
    assert "nothing was changed" in install(home, client, "--server", "chartgen", "--yes")
    assert [each.name for each in path.parent.iterdir() if each.is_file()] == [path.name], "nothing else is written"


def test_places_follow_the_variables_of_the_system(tmp_path: Path) -> None:
    windows = Machine("win32", tmp_path, {"APPDATA": str(PureWindowsPath("D:/Roaming"))})
    assert str(file_of(CLIENTS["vscode"], windows)).startswith("D:")
    moved = Machine("linux", tmp_path, {"XDG_CONFIG_HOME": "/etc/me", "CLAUDE_CONFIG_DIR": "/etc/claude"})
    assert file_of(CLIENTS["opencode"], moved) == Path("/etc/me/opencode/opencode.json")
    assert file_of(CLIENTS["claude-code"], moved) == Path("/etc/claude/.claude.json")
    commented = tmp_path / ".config" / "opencode" / "opencode.jsonc"
    commented.parent.mkdir(parents=True)
    commented.touch()
    assert file_of(CLIENTS["opencode"], Machine("linux", tmp_path, {})) == commented


def test_the_change_is_shown_and_asked_for_and_the_old_file_is_kept(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    before = '{\n\t"mcpServers": {\n\t\t"other": {"url": "https://example.com/é"}\n\t},\n\t"x": [1.50, null]\n}'
    path.write_text(before)
    path.chmod(0o640)
    shown = install(home, "cursor", "--server", "chartgen", "--trade", "--dry-run")
    assert '+\t\t"openbell-chartgen": {' in shown
    assert '+\t\t\t\t"--trade"' in shown
    install(home, "cursor", "--server", "chartgen", "--trade", code=1)  # nobody answers the question
    assert path.read_text() == before
    assert "wrote " in install(home, "cursor", "--server", "chartgen", "--trade", "--yes")
    after = json.loads(path.read_text())
    assert after["mcpServers"].pop("openbell-chartgen")["args"] == ["mcp", "chartgen", "--trade"]
    assert after == json.loads(before)
    (backup,) = path.parent.glob("*.bak")
    assert backup.read_text() == before
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(backup.stat().st_mode) == 0o640


def test_a_link_stays_a_link(home: Path) -> None:
    (home / "dotfiles.json").write_text("{}")
    (home / ".claude.json").symlink_to(home / "dotfiles.json")
    install(home, "claude-code", "--yes")
    assert (home / ".claude.json").is_symlink()
    assert len(json.loads((home / "dotfiles.json").read_text())["mcpServers"]) == 5


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // my servers\n  "servers": {}\n}',
        '{"servers": {},}',
        '{"servers": {}, "servers": {"a": {}}}',
        "[1]",
        '{"servers": []}',
        '{"a": NaN}',
        "not JSON",
    ],
)
def test_a_file_that_a_rewrite_would_damage_is_left_alone(home: Path, text: str) -> None:
    path = home / "mcp.json"
    path.write_text(text)
    said = install(home, "vscode", "--server", "chartgen", "--file", str(path), "--yes", code=1)
    assert path.read_text() == text
    assert [each.name for each in home.iterdir()] == ["mcp.json"]
    assert "not changed" in said
    if "not plain JSON" in said:
        assert '"openbell-chartgen": {' in said, "it says what to add"


def test_fields_that_a_user_has_added_to_an_entry_stay() -> None:
    mine = {"mcpServers": {"openbell-chartgen": {"command": "old", "timeout": 9, "env": {"OPENBELL_FEED": "none"}}}}
    server = Server(SERVER.name, SERVER.command, {"OPENBELL_HOME": "/h"})
    after = json.loads(changed(json.dumps(mine), CLIENTS["cursor"], [server], Path("mcp.json")))
    assert after["mcpServers"]["openbell-chartgen"] == {
        "command": "/bin/openbell",
        "timeout": 9,
        "env": {"OPENBELL_FEED": "none", "OPENBELL_HOME": "/h"},
        "args": ["mcp", "chartgen"],
    }


def test_opencode_keeps_the_form_of_its_file() -> None:
    newer = {"mcp": {"servers": {"a": {"type": "local", "command": ["a"]}}}}
    after = json.loads(changed(json.dumps(newer), CLIENTS["opencode"], [SERVER], Path("opencode.json")))
    assert list(after["mcp"]) == ["servers"]
    assert list(after["mcp"]["servers"]) == ["a", "openbell-chartgen"]
    named = {"mcp": {"servers": {"type": "local", "command": ["a server of this name"]}}}
    after = json.loads(changed(json.dumps(named), CLIENTS["opencode"], [SERVER], Path("opencode.json")))
    assert list(after["mcp"]) == ["servers", "openbell-chartgen"]


def test_unknown_names_suggest_the_nearest(home: Path) -> None:
    assert "did you mean 'cursor'?" in install(home, "curser", code=2)
    assert "did you mean 'chartgen'?" in install(home, "cursor", "--server", "chartgem", code=2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_nothing_that_a_file_holds_is_lost(config: dict[str, Any]) -> None:
    text = json.dumps(config)
    for client in CLIENTS.values():
        try:
            after = json.loads(changed(text, client, [SERVER], Path("config.json")))
        except Refused:
            assert not isinstance(config.get(client.keys[0], {}), dict)
            continue
        del after[client.keys[0]][SERVER.name]
        assert after == {client.keys[0]: {}} | config


def test_a_file_that_was_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"projects": 1}')
    after = changed('{"projects": 1}', CLIENTS["cursor"], [SERVER], file)
    file.write_text('{"projects": 2}')
    with pytest.raises(Refused, match="was changed meanwhile"):
        write(file, after, '{"projects": 1}')
    assert file.read_text() == '{"projects": 2}'
    assert list(tmp_path.iterdir()) == [file]


def test_only_files_are_changed(home: Path) -> None:
    os.mkfifo(pipe := home / "pipe")
    assert "is not a file" in install(home, "cursor", "-y", "--file", str(pipe), code=1)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("number", ["1e400", "0.12345678901234567890"])
def test_a_number_that_a_rewrite_would_change_is_refused(number: str) -> None:
    with pytest.raises(Refused, match="more digits than a rewrite would keep"):
        changed(f'{{"x": {number}}}', CLIENTS["cursor"], [SERVER], Path("c.json"))


def test_the_feed_and_the_settings_of_the_shell_are_in_the_entry(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBELL_FEED", "stocks=alpaca,crypto=ccxt:kraken")
    monkeypatch.setenv("OPENBELL_RISK_COLLAR", "0.02")
    monkeypatch.setenv("OPENBELL_TIMEOUT", "")
    monkeypatch.setenv("OPENBELL_NO_SETTING", "1")
    for name in ("ALPACA_API_KEY", "ALPACA_SECRET_KEY", "OPENBELL_INFLUX_TOKEN"):
        monkeypatch.setenv(name, "hidden-value")
    monkeypatch.setenv("OPENBELL_DATABASE_URL", "postgresql://me:hidden-value@127.0.0.1/desk")
    shown = install(home, "cursor", "--server", "chartgen", "--yes")
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["openbell-chartgen"]
    assert entry["env"] == {
        "OPENBELL_FEED": "stocks=alpaca,crypto=ccxt:kraken",
        "OPENBELL_HOME": str(home / "desk"),
        "OPENBELL_RISK_COLLAR": "0.02",
    }
    assert '"OPENBELL_FEED": "stocks=alpaca,crypto=ccxt:kraken"' in shown, "the change is shown"
    assert "ALPACA_API_KEY, ALPACA_SECRET_KEY, OPENBELL_DATABASE_URL, OPENBELL_INFLUX_TOKEN not written" in shown
    assert "hidden-value" not in shown + json.dumps(entry)


def test_a_server_that_the_client_starts_uses_the_feed_of_the_shell(home: Path) -> None:
    ended, _, errors = command(home / "desk", "install", "claude-code", "--server", "chart-signals", "-y", FEED="none")
    assert not ended, errors
    entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["openbell-chart-signals"]
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    asked = json.dumps(
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "get_capabilities", "arguments": {}}}
    )
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OPENBELL_")} | entry["env"]
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input=f"{line}\n{asked}\n",
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["result"]["_meta"]["openbell/truth"]["feed"] == "none"


def test_settings_with_which_no_server_would_start_are_refused(home: Path) -> None:
    ended, out, errors = command(home / "desk", "install", "cursor", "-y", FEED="alpca")
    assert ended == 1
    assert "alpca" in out + errors
    assert not (home / ".cursor").exists()
