"""Changes the configuration of an MCP client without losing anything that it holds. Files are JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

from openbell.desk.settings.private_files import as_user_wants
from openbell.market.clock import SystemClock
from openbell.market.errors import OpenbellError, Refused

_INDENT = re.compile(r'\n([ \t]+)"')


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


def changed(text: str, client: ClientProgram, servers: Sequence[Server], path: Path) -> str:
    """Returns the configuration with entries of these servers. Raises `Refused` if it cannot be changed safely.

    Other entries stay, and so do fields of the same entries that a user has added.
    """
    config = _parsed(text, client, servers, path)
    holder = config
    for key in client.keys:
        holder = _object(holder.setdefault(key, {}), f"{key} in {path}")
    # A configuration in the newer form has an object of servers there, and no server of that name.
    newer = holder.get(client.nested) if client.nested else None
    if isinstance(newer, dict) and not isinstance(newer.get("type"), str):
        holder = newer
    for server in servers:
        entry = client.entry(server)
        known = holder.get(server.name)
        if isinstance(known, dict):
            both = (key for key in entry if isinstance(entry[key], dict) and isinstance(known.get(key), dict))
            entry = known | entry | {key: known[key] | entry[key] for key in both}
        holder[server.name] = entry
    return _written(config, text)


def snippet(client: ClientProgram, servers: Sequence[Server]) -> str:
    """Returns what to add to a configuration by hand."""
    inner: dict[str, Any] = {server.name: client.entry(server) for server in servers}
    for key in reversed(client.keys):
        inner = {key: inner}
    return json.dumps(inner, indent=2, ensure_ascii=False)


def read(path: Path) -> str:
    """Returns the text of a configuration; empty if there is no file. Raises `OpenbellError`."""
    try:
        if path.exists() and not path.is_file():
            raise Refused(f"{path} is not a file: it was not changed")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise OpenbellError(f"cannot read {path}: {error}") from None


def write(path: Path, text: str, before: str) -> Path | None:
    """Replace a configuration in one step; returns the copy of what was there. Raises `OpenbellError`.

    `before` is what it held when the change was made: another program may have written it since.
    """
    if read(path) != before:
        raise Refused(f"{path} was changed meanwhile: nothing was written; run the command again")
    path = path.resolve()  # a link to a file elsewhere stays a link
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with as_user_wants():
            path.parent.mkdir(parents=True, exist_ok=True)
            backup = _backed_up(path) if path.exists() else None
            try:
                beside.write_text(text, encoding="utf-8")
                if backup is not None:
                    shutil.copymode(path, beside)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise OpenbellError(f"cannot write {path}: {error.strerror}") from None
    return backup


def _backed_up(path: Path) -> Path:
    """Copy a file beside itself, under a name that no file has."""
    moment = datetime.fromtimestamp(SystemClock().epoch(), UTC).strftime("%Y%m%dT%H%M%SZ")
    number, copy = 1, path.with_name(f"{path.name}.{moment}.bak")
    while copy.exists():
        number, copy = number + 1, path.with_name(f"{path.name}.{moment}-{number}.bak")
    shutil.copy2(path, copy)
    return copy


def _parsed(text: str, client: ClientProgram, servers: Sequence[Server], path: Path) -> dict[str, Any]:
    try:
        return _object(
            json.loads(text or "{}", object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_number), str(path)
        )
    except (ValueError, RecursionError) as error:
        raise Refused(
            f"{path} is not plain JSON ({error}): it may have comments, which a rewrite would lose. It was not changed. "
            f"Add this to it by hand:\n{snippet(client, servers)}"
        ) from None


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refused(f"{what} is not an object: it was not changed")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _number(text: str) -> float:
    """Returns a number. Raises `ValueError` if a rewrite would change it."""
    number = float(text)
    if not isfinite(number) or Decimal(text) != Decimal(repr(number)):
        raise ValueError(f"{text[:40]} has more digits than a rewrite would keep")
    return number


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number of JSON")


def _written(config: dict[str, Any], before: str) -> str:
    """Returns a configuration as text, indented as it was before."""
    found = _INDENT.search(before)
    indent = found[1] if found else "  "
    text = json.dumps(config, indent=indent, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a character, which only an escape can write
        text = json.dumps(config, indent=indent)
    return text + ("\n" if before.endswith("\n") or not before else "")
