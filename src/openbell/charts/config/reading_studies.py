"""Reads the studies of a chart config, with inputs by the contract's or by the vendor's names."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from openbell.charts.config.model import ConfigStudy
from openbell.charts.config.problems import Problems, is_finite, shorten
from openbell.charts.studies import catalogue
from openbell.charts.studies.study import Input, Study
from openbell.indicators.spec import Setting
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean

MOST_READ = 50
"""Studies or drawings of one config, whatever the plan."""
_KEYS = ("name", "inputs", "input", "override", "forceOverlay")
_SECOND_KEYS = {"BollingerBands": {"in_1": "stdDev"}}
"""Keys that one of two sources names for an input, if its value is a number."""


def read_studies(value: object, problems: Problems) -> tuple[ConfigStudy, ...]:
    """Returns the studies that can be read; the others are problems."""
    if value is None:
        return ()
    if not isinstance(value, list):
        problems.error("studies", f"studies must be a list of at most {MOST_READ} studies, not {shorten(value)}")
        return ()
    if len(value) > MOST_READ:
        problems.error("studies", f"{len(value)} studies, and a config may have {MOST_READ}")
        return ()
    found: list[ConfigStudy] = []
    for at, each in enumerate(value):
        study = _read(each, f"studies[{at}]", problems)
        if study is not None:
            if any(study == other for other in found):
                problems.warning(
                    f"studies[{at}]",
                    f"{study.study.title} is there twice with the same inputs",
                    f"Remove studies[{at}]",
                )
            found.append(study)
    return tuple(found)


def _read(raw: object, at: str, problems: Problems) -> ConfigStudy | None:
    if isinstance(raw, str):
        raw = {"name": raw}
    if not isinstance(raw, Mapping):
        problems.error(at, f"a study must be an object with a name, not {shorten(raw)}")
        return None
    name = raw.get("name")
    if not isinstance(name, str):
        problems.error(f"{at}.name", "a study needs a name", "Names are in fetch_chart_documentation")
        return None
    try:
        study = catalogue.find(name)
    except InvalidParameter as error:
        problems.error(f"{at}.name", error.message, "Use a name from fetch_chart_documentation, section indicators")
        return None
    for key in raw:
        if key not in _KEYS and not problems.full("warning"):
            problems.warning(
                f"{at}.{str(key)[:40]}",
                f"unknown field {str(key)[:40]!r} is ignored{did_you_mean(str(key)[:40], _KEYS)}",
            )
    override, forced = raw.get("override") or {}, raw.get("forceOverlay", False)
    if not isinstance(override, Mapping):
        problems.error(f"{at}.override", f"override must be an object, not {shorten(override)}")
        override = {}
    if not is_finite(override):
        problems.error(f"{at}.override", "numbers of override must be finite")
    if not isinstance(forced, bool):
        problems.error(f"{at}.forceOverlay", f"forceOverlay must be true or false, not {shorten(forced)}")
    return ConfigStudy(study, _inputs(study, raw, at, problems), override, forced is True)


def _inputs(study: Study, raw: Mapping[str, Any], at: str, problems: Problems) -> dict[str, Setting]:
    given: dict[str, object] = {}
    where = "input" if "input" in raw else "inputs"
    for key in ("inputs", "input"):
        part = raw.get(key) or {}
        if not isinstance(part, Mapping):
            problems.error(f"{at}.{key}", f"{key} must be an object, not {shorten(part)}")
            continue
        given |= {str(name): value for name, value in part.items()}
    named = {each.name: each for each in study.inputs}
    # Other clients count the inputs of every study, also of those whose inputs have names.
    keyed = {f"in_{number}": each for number, each in enumerate(study.inputs)} | {
        each.key: each for each in study.inputs
    }
    found: dict[str, Setting] = {}
    for name, value in given.items():
        if problems.full("error"):
            break
        second = _SECOND_KEYS.get(study.short, {}).get(name, "")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        known = named[second] if second and is_number else named.get(name) or keyed.get(name)
        if known is None:
            has = ", ".join(named) or "none"
            advice = did_you_mean(name[:40], named) or f"; it has {has}"
            problems.error(
                f"{at}.{where}.{name[:40]}",
                f"{study.title} has no input {name[:40]!r}{advice}",
                f"Inputs of {study.title}: {has}",
            )
            continue
        try:
            found[known.name] = known.check(value)
        except InvalidParameter as error:
            problems.error(f"{at}.{where}.{name[:40]}", f"{study.title}: {error.message}", _mended(known, value))
    return found


def _mended(known: Input, value: object) -> str:
    """Returns how to write a value that was refused: the number in a text, else the default."""
    if isinstance(value, str) and known.kind == "number":
        with suppress(ValueError, InvalidParameter):
            number = float(value)
            return f"Set {known.name} to {known.check(number)} without quotation marks"
    return f"Set {known.name} to {known.default}"
