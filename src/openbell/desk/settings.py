"""Settings: `openbell.toml` in the home and OPENBELL_* variables; the variable wins.

Each setting is one field below; its help text is the documentation (docs/settings.md is generated from it).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from openbell.market.clock import parse_time
from openbell.market.errors import InvalidParameter, SettingsError

PREFIX = "OPENBELL_"
_HOME = Path("~/.openbell")
_SEED = 7
FEEDS = ("sim", "replay", "none")


def _setting(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"help": doc})


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may choose. Immutable: every process reads it once."""

    home: Path = _setting(_HOME, "folder of all data and settings")
    feed: str = _setting(
        "sim", "where bars come from: sim (simulated), replay (stored bars again), none (stored bars only)"
    )
    as_of: str = _setting("", "let the clock stand at this time (ISO 8601; no zone means UTC); nothing later is seen")
    replay_speed: float = _setting(0.0, "with as_of: let the clock run from there, this many times real time")
    sim_seed: int = _setting(_SEED, "seed of the simulated market")
    read_only: bool = _setting(
        False, "refuse every tool that writes; nothing lifts it (bars that a feed delivers are still kept)"
    )
    trade: bool = _setting(False, "allow the trading tools")
    log: str = _setting("warning", "how much goes to the log on standard error: debug, info, warning, error")

    @property
    def simulated(self) -> bool:
        """Whether bars are made up."""
        return self.feed == "sim"

    @property
    def bar_folder(self) -> Path:
        """Where bars are stored; simulated ones live apart, so that they can never be taken for real."""
        if not self.simulated:
            return self.home / "data"
        # Another seed is another market: its bars must not meet the first one's.
        market = self.home / "simulated"
        return (market if self.sim_seed == _SEED else market / f"seed-{self.sim_seed}") / "data"

    @property
    def watchlist_file(self) -> Path:
        """The list of watched symbols."""
        return self.home / "watchlist.txt"


def names() -> dict[str, tuple[str, Any, str]]:
    """For each setting its variable, default and help."""
    return {f.name: (PREFIX + f.name.upper(), f.default, f.metadata["help"]) for f in fields(Settings)}


def load(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Read file and environment; `overrides` are command-line flags and win over both. Raises `SettingsError`."""
    env = os.environ if environ is None else environ
    home = _home(overrides.get("home") or env.get(PREFIX + "HOME") or _HOME)
    flags = {name: value for name, value in overrides.items() if value is not None}
    layers = (_from_file(home / "openbell.toml"), _from_environment(env), flags)
    typed = [{name: _typed(name, value) for name, value in layer.items()} for layer in layers]
    values: dict[str, Any] = {name: value for layer in typed for name, value in layer.items()}
    values["home"] = home
    # The one setting that a later layer cannot take back.
    values["read_only"] = any(layer.get("read_only", False) for layer in typed)
    settings = Settings(**values)
    _check(settings)
    return settings


def _home(path: str | Path) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:
        raise SettingsError(f"OPENBELL_HOME is {str(path)!r}: {error}") from None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}") from error
    if "home" in table:
        raise SettingsError(f"{path}: the home is where this file lies; set OPENBELL_HOME to move it")
    for name in table:
        if name not in names():
            near = get_close_matches(name, names(), n=1)
            raise SettingsError(f"{path}: unknown setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return table


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    found = {name: env.get(variable, "") for name, (variable, _, _) in names().items()}
    return {name: value for name, value in found.items() if value != ""}


def _typed(name: str, value: Any) -> Any:
    """A value as its field's type; text is read, other types must fit."""
    default = Settings.__dataclass_fields__[name].default
    variable = PREFIX + name.upper()
    if isinstance(default, bool):
        return _flag(variable, value)
    if isinstance(default, int | float):
        return _number(variable, value, type(default))
    if isinstance(default, str) and not isinstance(value, str):
        return str(value)
    return value


def _number(variable: str, value: Any, kind: type[int] | type[float]) -> int | float:
    try:
        number = kind(value)
        if not isinstance(value, bool) and (isinstance(value, str) or number == value):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise SettingsError(f"{variable} must be a {'whole ' if kind is int else ''}number, not {value!r}")


def _flag(variable: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off"}:
        return False
    raise SettingsError(f"{variable} must be true or false, not {value!r}")


def _check(settings: Settings) -> None:
    if settings.feed not in FEEDS:
        raise SettingsError(f"OPENBELL_FEED is {settings.feed!r}: use one of {', '.join(FEEDS)}")
    if settings.log.lower() not in {"debug", "info", "warning", "error"}:
        raise SettingsError(f"OPENBELL_LOG is {settings.log!r}: use debug, info, warning or error")
    if not 0 <= settings.replay_speed <= 1e6:
        raise SettingsError("OPENBELL_REPLAY_SPEED must be between 0 and 1,000,000")
    if settings.as_of:
        try:
            parse_time(settings.as_of)
        except InvalidParameter as error:
            raise SettingsError(f"OPENBELL_AS_OF: {error}") from None
    elif settings.replay_speed:
        raise SettingsError("OPENBELL_REPLAY_SPEED needs OPENBELL_AS_OF, the time to begin at")
