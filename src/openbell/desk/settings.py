"""Settings: `openbell.toml` in the home and OPENBELL_* variables; the variable wins.

Each setting is one field below; its help text is the documentation (docs/settings.md is generated from it).
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from zlib import crc32

from openbell.market.clock import parse_time
from openbell.market.errors import InvalidParameter, SettingsError

PREFIX = "OPENBELL_"
_HOME = Path("~/.openbell")
_SEED = 7
FEEDS = ("sim", "replay", "alpaca", "ccxt:EXCHANGE", "none")
_CHOICES = {
    "alpaca_feed": ("iex", "sip"),
    "alpaca_adjustment": ("raw", "split", "dividend", "all"),
    "log": ("debug", "info", "warning", "error"),
}
_RANGES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("timeout", "stale_after", "cache_candles", "cache_price", "cache_volatility"), (0, 1e9)),
    **dict.fromkeys(("pool_influx_idle", "pool_influx_connect", "pool_influx_timeout"), (0.001, 1e9)),
    "pool_influx_connections": (1, 1000),
    "replay_speed": (0, 1e6),
}
_PATTERNS = {
    "influx_url": (
        r"(https?://([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(:\d{1,5})?(/[!-~]*)?)?",
        "must be like http://HOST:8086, its password in OPENBELL_INFLUX_TOKEN",
    ),
    "influx_token": (r"[!-~]*", "holds characters that no token has, such as a space or the end of a line"),
    "influx_database": (r"[A-Za-z0-9_.-]{1,60}", "may have letters, digits, dots, dashes and underscores"),
}
_CCXT = re.compile(r"ccxt:[a-z0-9_]+")


def _setting(default: Any, doc: str, *, secret: bool = False) -> Any:
    return field(default=default, metadata={"help": doc}, repr=not secret)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person may choose. Immutable: every process reads it once."""

    home: Path = _setting(_HOME, "folder of all data and settings")
    feed: str = _setting(
        "sim",
        "where bars come from: sim (simulated), alpaca, ccxt:EXCHANGE such as ccxt:binance, "
        "replay (stored bars again), none (stored bars only)",
    )
    as_of: str = _setting("", "let the clock stand at this time (ISO 8601; no zone means UTC); nothing later is seen")
    replay_speed: float = _setting(0.0, "with as_of: let the clock run from there, this many times real time")
    sim_seed: int = _setting(_SEED, "seed of the simulated market")
    read_only: bool = _setting(
        False, "refuse every tool that writes; nothing lifts it (bars that a feed delivers are still kept)"
    )
    trade: bool = _setting(False, "allow the trading tools")
    timeout: float = _setting(10.0, "seconds that one tool call may take; 0: as long as it likes")
    stale_after: float = _setting(900.0, "seconds of trading time after which a price is no longer current")
    cache_candles: float = _setting(60.0, "seconds for which get_candles may answer the same again")
    cache_price: float = _setting(5.0, "seconds for which get_current_price may answer the same again")
    cache_volatility: float = _setting(30.0, "seconds for which get_volatility may answer the same again")
    alpaca_feed: str = _setting("iex", "Alpaca's tape for stocks: iex (free) or sip")
    alpaca_adjustment: str = _setting("raw", "Alpaca's adjustment of stock prices: raw, split, dividend or all")
    influx_url: str = _setting(
        "", "keep bars in this InfluxDB, such as http://127.0.0.1:8086, instead of Parquet files"
    )
    influx_database: str = _setting("openbell", "its database; simulated bars go to NAME_simulated_SEED")
    influx_token: str = _setting("", "its token, or user:password", secret=True)
    pool_influx_connections: int = _setting(5, "the most connections to InfluxDB")
    pool_influx_idle: float = _setting(60.0, "seconds after which an idle connection to it is closed")
    pool_influx_connect: float = _setting(3.0, "seconds in which a connection to it must stand")
    pool_influx_timeout: float = _setting(5.0, "seconds in which it must answer")
    log: str = _setting("warning", "how much goes to the log on standard error: debug, info, warning, error")

    @property
    def simulated(self) -> bool:
        """Whether bars are made up."""
        return self.feed == "sim"

    @property
    def bar_folder(self) -> Path:
        """Where bars are stored; simulated ones live apart, so that they can never be taken for real.

        Of bars in InfluxDB, it is where new ones wait and what is known about them is kept.
        """
        name = (
            f"influx/{crc32(f'{self.influx_url} {self.influx_database}'.encode()):08x}" if self.influx_url else "data"
        )
        if not self.simulated:
            return self.home / name
        # Another seed is another market: its bars must not meet the first one's.
        market = self.home / "simulated"
        return (market if self.sim_seed == _SEED else market / f"seed-{self.sim_seed}") / name

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
    plain = [feed for feed in FEEDS if ":" not in feed]
    if settings.feed not in plain and not _CCXT.fullmatch(settings.feed):
        raise SettingsError(f"OPENBELL_FEED is {settings.feed!r}: use one of {', '.join(FEEDS)}")
    for name, choices in _CHOICES.items():
        if getattr(settings, name).lower() not in choices:
            raise SettingsError(f"{PREFIX}{name.upper()} is {getattr(settings, name)!r}: use {', '.join(choices)}")
    for name, (low, high) in _RANGES.items():
        if not low <= getattr(settings, name) <= high:
            raise SettingsError(f"{PREFIX}{name.upper()} must be between {low:,g} and {high:,g}")
    for name, (pattern, hint) in _PATTERNS.items():
        if not re.fullmatch(pattern, getattr(settings, name)):
            raise SettingsError(f"{PREFIX}{name.upper()} {hint}")
    _check_clock(settings)


def _check_clock(settings: Settings) -> None:
    if settings.as_of:
        try:
            parse_time(settings.as_of)
        except InvalidParameter as error:
            raise SettingsError(f"OPENBELL_AS_OF: {error}") from None
    elif settings.replay_speed:
        raise SettingsError("OPENBELL_REPLAY_SPEED needs OPENBELL_AS_OF, the time to begin at")
