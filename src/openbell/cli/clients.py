"""MCP clients that `openbell install` configures: where each keeps its configuration, and the form of an entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Machine:
    """What the place of a configuration depends on."""

    system: str
    """As `sys.platform`: linux, darwin or win32."""
    home: Path
    environ: Mapping[str, str]

    @property
    def applications(self) -> Path:
        """The folder in which desktop applications keep their settings."""
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        if self.system == "win32":
            return Path(self.environ.get("APPDATA") or self.home / "AppData" / "Roaming")
        return self.config

    @property
    def config(self) -> Path:
        """The folder of the XDG convention."""
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")


@dataclass(frozen=True, slots=True)
class Server:
    """One server that a client starts."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """One MCP client."""

    name: str
    title: str
    paths: Callable[[Machine], Sequence[Path]]
    """Returns where it reads its configuration: the first file that exists is changed, else the first is created."""
    entry: Callable[[Server], dict[str, Any]]
    """Returns the entry of one server."""
    keys: tuple[str, ...] = ("mcpServers",)
    """The way to the object that holds the entries."""
    nested: str = ""
    """A key below `keys` that newer configurations of the client use instead, if they have it."""


def _plain(server: Server) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": server.command[0], "args": list(server.command[1:])}
    return entry | ({"env": dict(server.environ)} if server.environ else {})


def _typed(server: Server) -> dict[str, Any]:
    return {"type": "stdio", **_plain(server)}


def _opencode(server: Server) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "local", "command": list(server.command)}
    return entry | ({"environment": dict(server.environ)} if server.environ else {})


def _claude_code(machine: Machine) -> list[Path]:
    return [Path(machine.environ.get("CLAUDE_CONFIG_DIR") or machine.home) / ".claude.json"]


def _opencode_files(machine: Machine) -> list[Path]:
    return [machine.config / "opencode" / name for name in ("opencode.json", "opencode.jsonc")]


CLIENTS = {
    client.name: client
    for client in (
        ClientProgram(
            "claude-desktop",
            "Claude Desktop",
            lambda machine: [machine.applications / "Claude" / "claude_desktop_config.json"],
            _plain,
        ),
        ClientProgram("claude-code", "Claude Code", _claude_code, _typed),
        ClientProgram("cursor", "Cursor", lambda machine: [machine.home / ".cursor" / "mcp.json"], _plain),
        ClientProgram(
            "vscode",
            "VS Code",
            lambda machine: [machine.applications / "Code" / "User" / "mcp.json"],
            _typed,
            keys=("servers",),
        ),
        ClientProgram("opencode", "opencode", _opencode_files, _opencode, keys=("mcp",), nested="servers"),
    )
}


def file_of(client: ClientProgram, machine: Machine) -> Path:
    """Returns the file to change; it may not exist."""
    paths = client.paths(machine)
    return next((path for path in paths if path.exists()), paths[0])
