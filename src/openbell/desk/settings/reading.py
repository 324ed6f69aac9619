"""Reads the settings: flags override OPENBELL_* variables, which override `openbell.toml` in the home."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openbell.desk.settings.checks import PREFIX
from openbell.desk.settings.rules import check_together
from openbell.desk.settings.settings import DEFAULT_HOME, Settings, all_settings
from openbell.desk.settings.toml_file import NAME, SettingsFile, read_file
from openbell.market.errors import SettingsError
from openbell.market.nearest import did_you_mean


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
