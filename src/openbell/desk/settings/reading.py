"""Reads the settings: flags override OPENBELL_* variables, which override `openbell.toml` in the home.

Each setting is checked alone, and then all of them for contradictions.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from openbell.brokers.registry import all_brokers
from openbell.desk.settings.checks import PREFIX, is_private
from openbell.desk.settings.setting import Setting
from openbell.desk.settings.settings import DEFAULT_HOME, Settings, all_settings
from openbell.feeds.registry import feed_of
from openbell.market.errors import SettingsError
from openbell.market.nearest import did_you_mean
from openbell.market.provenance import Origin
from openbell.net.addresses import is_loopback

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


def load(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Returns the settings of file and environment; `overrides` (command-line flags) win. Raises `SettingsError`."""
    env = os.environ if environ is None else environ
    home = _home(overrides.get("home") or env.get(PREFIX + "HOME") or DEFAULT_HOME)
    flags = {name: value for name, value in overrides.items() if value is not None}
    file, environment = file_of(home), _from_environment(env)
    with file.keys_named(set(file.values)):
        stored = _typed(file.values)
    with file.keys_named(file.values.keys() - environment.keys() - flags.keys()):
        return _settings(home, [stored, _typed(environment), _typed(flags)])


def file_of(home: Path) -> SettingsFile:
    """Returns the file of settings in a home. Raises `SettingsError` if it cannot be read or has an unknown key."""
    return read_file(home / NAME, all_settings())


def home_of(environ: Mapping[str, str]) -> Path:
    """Returns the home without reading any other setting. Raises `SettingsError`."""
    return _home(environ.get(PREFIX + "HOME") or DEFAULT_HOME)


def unknown_variables(environ: Mapping[str, str]) -> str | None:
    """Returns a warning that names the OPENBELL_ variables that are no settings, without their values; None if all are."""
    known = {each.variable for each in all_settings().values()}
    found = sorted(each for each in environ if each.startswith(PREFIX) and each not in known)
    shown = "; ".join(
        f"{each[:80]} is not a setting and is ignored{did_you_mean(each, known, 0.8)}" for each in found[:8]
    )
    return shown or None


def _typed(layer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: all_settings()[name].typed(value) for name, value in layer.items()}


def _settings(home: Path, read: Sequence[Mapping[str, Any]]) -> Settings:
    """Returns the settings of layers, of which later ones win."""
    values: dict[str, Any] = {name: each.default for name, each in all_settings().items()}
    values |= {name: value for layer in read for name, value in layer.items()}
    values["home"] = home
    # The one setting that a later layer cannot switch off.
    values["read_only"] = any(layer.get("read_only", False) for layer in read)
    for name, each in all_settings().items():
        each.check(values[name])
    own = Settings.__dataclass_fields__.keys()
    options = {name: value for name, value in values.items() if name not in own}
    settings = Settings(**{name: value for name, value in values.items() if name in own}, options=options)
    check_together(settings)
    return settings


def _home(path: str | Path) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise SettingsError(f"OPENBELL_HOME is {str(path)!r}: {error}") from None


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    found = {name: env.get(each.variable, "") for name, each in all_settings().items()}
    return {name: value for name, value in found.items() if value != ""}


def check_together(settings: Settings) -> None:
    """Raise `SettingsError` for settings that contradict each other."""
    if settings.pool_postgres_min > settings.pool_postgres_max:
        raise SettingsError("OPENBELL_POOL_POSTGRES_MIN must not be more than OPENBELL_POOL_POSTGRES_MAX")
    if bool(settings.backtester_tls_cert) != bool(settings.backtester_tls_key):
        raise SettingsError("OPENBELL_BACKTESTER_TLS_CERT and OPENBELL_BACKTESTER_TLS_KEY need each other")
    if settings.backtester_tls_cert and not settings.backtester_tls_ca:
        raise SettingsError("OPENBELL_BACKTESTER_TLS_CERT needs OPENBELL_BACKTESTER_TLS_CA: without it there is no TLS")
    if settings.arche_key and not is_private(settings.arche_url):
        raise SettingsError("OPENBELL_ARCHE_URL: over http, OPENBELL_ARCHE_KEY can be read on the network; use https")
    _check_clock(settings)
    _check_broker(settings)
    _check_gateway(settings)


def _check_clock(settings: Settings) -> None:
    if settings.scenario and not settings.other_clock:
        raise SettingsError("--scenario (OPENBELL_SCENARIO) needs --as-of: the present has no scenarios")
    if settings.replay_speed and not settings.as_of:
        raise SettingsError("OPENBELL_REPLAY_SPEED needs OPENBELL_AS_OF, the time to begin at")


def _check_broker(settings: Settings) -> None:
    """Raise `SettingsError` if orders at a broker would be based on simulated, replayed or past bars."""
    if all_brokers()[settings.broker].make is None:
        return
    if feed_of(settings.feed).origin in {Origin.SIMULATED, Origin.REPLAY}:
        raise SettingsError(
            f"OPENBELL_BROKER={settings.broker} needs real prices, and the feed is {settings.feed}: "
            "set OPENBELL_FEED=alpaca, or trade on paper"
        )
    if settings.as_of:
        raise SettingsError(f"OPENBELL_BROKER={settings.broker} trades now: it cannot be used with --as-of")


def _check_gateway(settings: Settings) -> None:
    """Raise `SettingsError` if anybody could read without a token, or tokens would be sent over a network without TLS."""
    if settings.open_reading and settings.public_url:
        raise SettingsError(
            "OPENBELL_OPEN_READING lets clients without a token read, and OPENBELL_PUBLIC_URL makes the gateway public: "
            "unset one of them, and give clients a token (openbell token add NAME --scopes read)"
        )
    if not is_loopback(settings.host) and not settings.public_url and not settings.allowed_hosts:
        raise SettingsError(
            f"OPENBELL_HOST={settings.host} can be reached from other machines, and the gateway has no TLS: put a TLS "
            "proxy in front of it and set OPENBELL_PUBLIC_URL, or name in OPENBELL_ALLOWED_HOSTS what clients call it"
        )
