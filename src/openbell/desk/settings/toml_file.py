"""`openbell.toml`: its values, and where they stand, so that an error names the file, the line and the key."""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from openbell.desk.settings.checks import PREFIX
from openbell.desk.settings.setting import Setting
from openbell.market.errors import SettingsError

NAME = "openbell.toml"
RESTORING = "restoring"
"""A file in a home whose entries are being replaced by `openbell restore`."""
_VARIABLE = re.compile(rf"{PREFIX}[A-Z0-9_]+")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The file of a home; empty if there is none."""

    path: Path
    known: Mapping[str, Setting]
    """All settings by name."""
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """The number of the line of each key."""

    @contextmanager
    def keys_named(self, chosen: Collection[str]) -> Iterator[None]:
        """Name keys of this file instead of variables in errors on the settings that it has set."""
        try:
            yield
        except SettingsError as error:
            raise SettingsError(self._name_keys(error.message, chosen)) from None

    def _name_keys(self, message: str, chosen: Collection[str]) -> str:
        """Returns a message on variables with the keys of this file instead, for the settings that it has set."""
        keys = [key for each in _VARIABLE.findall(message) if (key := each.removeprefix(PREFIX).lower()) in chosen]
        if not keys:
            return message
        for key in sorted(keys, key=len, reverse=True):
            message = re.sub(rf"{PREFIX}{key.upper()}\b", key, message)
        line = self.lines.get(keys[0])
        return f"{self.path}{f', line {line}' if line else ''}: {message}"

    def exposed(self) -> list[str]:
        """Returns the keys of secrets in the file if every user of the machine can read it; otherwise none."""
        keys = [key for key, value in self.values.items() if value and self.known[key].shows_secret(str(value))]
        try:
            readable = self.path.stat().st_mode & stat.S_IROTH and self.path.parent.stat().st_mode & stat.S_IXOTH
        except OSError:
            return []
        return keys if readable else []

    @property
    def warning(self) -> str | None:
        """What to tell the operator about secrets that others can read; None if there are none."""
        keys = self.exposed()
        return f"{self.path} holds {', '.join(keys)} and can be read by every user: chmod 600 it" if keys else None


def read_file(path: Path, known: Mapping[str, Setting]) -> SettingsFile:
    """Returns the file. Raises `SettingsError` if it cannot be read or has an unknown key, or its home is not complete."""
    if path.with_name(RESTORING).exists():
        raise SettingsError(
            f"a restore of {path.parent} is running or was interrupted: run openbell restore DIR --replace again, which "
            "first puts back what it had moved"
        )
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return SettingsFile(path, known)
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    try:
        text = data.decode()
        values = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"cannot read {path}, line {line}: not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"cannot read {path}: {error}") from None
    file = SettingsFile(path, known, values, _lines(text, values))
    if "home" in values:
        raise SettingsError(f"{path}: the home is where this file lies; set OPENBELL_HOME to move it")
    for name in values:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            where = f"{path}, line {file.lines[name]}" if name in file.lines else f"{path}"
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise SettingsError(f"{where}: unknown setting {name!r}{hint}")
    return file


def _lines(text: str, keys: Collection[str]) -> dict[str, int]:
    """Returns the first line that begins with each key."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        start = re.match(r"""\s*\[*\s*["']?([A-Za-z0-9_-]+)["']?\s*[=\].]""", line)
        if start and start[1] in keys:
            found.setdefault(start[1], number)
    return found
