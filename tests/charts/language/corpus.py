"""The corpus: sentences with the configs that they mean. README.md has the rules that decide them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from openbell.charts.config.choices import DEFAULT_INTERVAL, HEIGHT, WIDTH
from openbell.charts.studies.catalogue import find

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
"""The clock of all sentences: a Wednesday."""
FOLDER = Path(__file__).parent
DEFAULTS: dict[str, Any] = {
    "interval": DEFAULT_INTERVAL,
    "range": None,
    "theme": "light",
    "style": "candle",
    "width": WIDTH,
    "height": HEIGHT,
    "scale": "regular",
    "studies": [],
    "drawings": [],
}
"""The value of each field that an entry or a config leaves out."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One sentence and what it means."""

    theme: str
    """The subject that the sentence is about: the name of its file, or the field `theme`."""
    say: str
    args: Mapping[str, Any] = field(default_factory=dict)
    """The other arguments of the tool: symbol, exchange, preferences."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """As it is written: only what differs from `DEFAULTS`, studies in one line each. Empty if the sentence is an error."""
    warns: tuple[str, ...] = ()
    """Texts that the warnings must contain, in any case. No warning at all is expected if it is empty."""
    error: str = ""
    """A text that the error must contain, in any case."""

    @property
    def expected(self) -> dict[str, Any]:
        """The whole config."""
        drawings = [expanded_drawing(each) for each in self.config.get("drawings", ())]
        studies = [expanded_study(each) for each in self.config.get("studies", ())]
        return complete({**self.config, "studies": studies, "drawings": drawings})

    def problems(self, answer: Mapping[str, Any]) -> list[str]:
        """Returns how the answer of construct_chart_config differs from what the entry expects; empty if it is right."""
        message = str(answer.get("error") or "")
        if self.error:
            return [] if self.error in message.lower() else [f"error {message!r} must contain {self.error!r}"]
        if message:
            return [f"error {message!r}"]
        expected, actual = self.expected, complete(answer["config"])
        found = [
            f"{name}: {actual.get(name)!r} must be {expected.get(name)!r}"
            for name in sorted({*expected, *actual})
            if expected.get(name) != actual.get(name)
        ]
        warnings = " ".join(answer["warnings"]).lower()
        found += [f"no warning contains {each!r}" for each in self.warns if each.lower() not in warnings]
        if warnings and not self.warns:
            found.append(f"warnings {answer['warnings']!r} must be none")
        return found


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config with all optional fields."""
    return {**DEFAULTS, **config}


def expanded_study(text: str) -> dict[str, Any]:
    """Returns a study with all its main inputs: `BollingerBands 20 2.5`, or by name: `ADX length=20`."""
    name, *numbers = text.split()
    study = find(name)
    main = [each for each in study.inputs if not each.extra]
    inputs = {each.name: each.default for each in main}
    known = {each.name: each for each in main}
    for at, number in enumerate(numbers):
        key, _, value = number.rpartition("=")
        given = known[key] if key else main[at]
        inputs[given.name] = given.check(json.loads(value))
    return {"name": study.name, "inputs": inputs}


def expanded_drawing(written: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a drawing in the contract's form. Days become their first second."""
    coordinates = {
        name: f"{value}T00:00:00Z" if name.lower().endswith("datetime") else value
        for name, value in written.items()
        if name != "type"
    }
    return {"type": written["type"], "coordinates": coordinates}


def visible() -> list[Entry]:
    """The entries from which the parser is written, by theme."""
    return [entry for path in sorted((FOLDER / "visible").glob("*.jsonl")) for entry in _read(path)]


def held_out() -> list[Entry]:
    """Every fifth entry of each theme: they measure the parser and are not read by its authors."""
    return _read(FOLDER / "held_out.jsonl")


def _read(path: Path) -> list[Entry]:
    entries = []
    for line in path.read_text().splitlines():
        fields = {"theme": path.stem, **json.loads(line)}
        entries.append(Entry(**{**fields, "warns": tuple(fields.get("warns", ()))}))
    return entries
