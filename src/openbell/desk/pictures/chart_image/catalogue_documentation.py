"""The documentation in the form of the contract, built from this package alone or from a page and this package."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from openbell.charts.config.choices import INTERVALS, PLANS, PRESETS, SCALES, SESSIONS, STYLES, THEMES
from openbell.charts.config.model import KINDS, AnnotationKind
from openbell.charts.studies.catalogue import all_studies
from openbell.charts.studies.study import Input, Study
from openbell.desk.pictures.chart_image.page_facts import PageFacts
from openbell.desk.pictures.chart_image.words import clean
from openbell.market.errors import InvalidParameter

PARTS = ("indicators", "chartParameters", "rateLimits", "examples")
PAGE, CATALOGUE = "page", "catalogue"
_OTHER = "Other"
"""The category of studies that this package does not know."""
_EXAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "Bitcoin with Bollinger Bands and RSI over 7 days",
        {
            "symbol": "BINANCE:BTCUSDT",
            "interval": "1h",
            "range": "7D",
            "theme": "dark",
            "studies": [
                {"name": "BollingerBands@tv-basicstudies", "inputs": {"length": 20, "stdDev": 2}},
                {"name": "RSI@tv-basicstudies", "inputs": {"length": 14}},
            ],
        },
    ),
    (
        "Apple since the beginning of the year with two moving averages and volume",
        {
            "symbol": "NASDAQ:AAPL",
            "interval": "1D",
            "range": "YTD",
            "style": "candle",
            "studies": [
                {"name": "MA@tv-basicstudies", "inputs": {"length": 50}},
                {"name": "MA@tv-basicstudies", "inputs": {"length": 200}},
                {"name": "Volume@tv-basicstudies"},
            ],
        },
    ),
    (
        "Euro in US dollars between two days with MACD, as a line",
        {
            "symbol": "FX:EURUSD",
            "interval": "4h",
            "range": "2026-03-03/2026-03-17",
            "style": "line",
            "width": 800,
            "height": 600,
            "studies": [
                {"name": "MACD@tv-basicstudies", "inputs": {"fastLength": 12, "slowLength": 26, "signalLength": 9}}
            ],
        },
    ),
)


def catalogue_documentation() -> dict[str, Any]:
    """Returns the contract's `data` from this package alone."""
    return merged_documentation(PageFacts())[0]


def merged_documentation(facts: PageFacts) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the contract's `data` of a page, completed from this package, and where each part comes from.

    A source is `page`, `catalogue`, or `page and catalogue`.
    """
    indicators = [_indicator(study, facts.studies.get(study.title, {})) for study in all_studies().values()]
    known = {study.title for study in all_studies().values()}
    indicators += [_foreign(title, inputs) for title, inputs in facts.studies.items() if title not in known]
    parameters = {
        "intervals": INTERVALS,
        "ranges": PRESETS,
        "themes": THEMES,
        "styles": STYLES,
        "scales": SCALES,
        "sessions": SESSIONS,
        "drawings": [_drawing(kind) for kind in KINDS.values()],
    }
    limits = {
        plan.name: {
            "requestsPerSecond": plan.per_second,
            "dailyMax": plan.per_day,
            "maxResolution": plan.resolution,
            "maxStudies": plan.parameters,
            **facts.limits.get(plan.name, {}),
        }
        for plan in PLANS.values()
    }
    examples = [{"description": text, "config": config} for text, config in _EXAMPLES]
    data = {
        "indicators": indicators,
        "chartParameters": {name: list(facts.parameters.get(name, values)) for name, values in parameters.items()},
        "rateLimits": limits,
        "examples": [*({**each, "description": clean(each["description"], "")} for each in facts.examples), *examples],
    }
    sources = {
        "indicators": _source(len(facts.studies), len(known)),
        "chartParameters": _source(len(facts.parameters), len(parameters)),
        "rateLimits": _source(sum(map(len, facts.limits.values())), sum(map(len, limits.values()))),
        "examples": f"{PAGE} and {CATALOGUE}" if facts.examples else CATALOGUE,
    }
    return data, sources


def _drawing(kind: AnnotationKind) -> str:
    """Returns a kind of drawing with its coordinates: `Horizontal Line: price (text)`."""
    optional = f" ({', '.join(kind.optional)})" if kind.optional else ""
    return f"{kind.name}: {', '.join(kind.required)}{optional}"


def _source(found: int, wanted: int) -> str:
    if not found:
        return CATALOGUE
    return PAGE if found >= wanted else f"{PAGE} and {CATALOGUE}"


def _indicator(study: Study, defaults: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": study.name,
        "displayName": study.display_name,
        "category": str(study.category),
        "inputs": {each.name: _input(each, defaults.get(each.key)) for each in study.inputs},
    }


def _input(wanted: Input, default: object) -> dict[str, Any]:
    """Returns an input, with the default of the page if it is a valid one."""
    found: dict[str, Any] = {"type": wanted.kind, "default": wanted.default, "description": _description(wanted)}
    if wanted.kind == "number":
        found |= {"min": wanted.low, "max": wanted.high}
    if default is not None:
        with suppress(InvalidParameter):
            found["default"] = wanted.check(default)
    return found


def _description(wanted: Input) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", wanted.name).lower()
    if wanted.choices:
        return f"{wanted.description or words}: {', '.join(wanted.choices)}"
    return f"{words}, {wanted.description}" if wanted.description else words


def _foreign(title: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Returns a study that only the page has."""
    kinds = {bool: "boolean", str: "string"}
    described = {
        key: {"type": kinds.get(type(default), "number"), "default": default, "description": key}
        for key, default in inputs.items()
    }
    return {"name": title, "displayName": title, "category": _OTHER, "inputs": described}


def is_documentation(data: object) -> bool:
    """Returns True if a value has the form of the contract's `data`, such as one that was read from a file."""
    if not isinstance(data, dict) or set(data) != set(PARTS):
        return False
    indicators, parameters, limits, examples = (data[name] for name in PARTS)
    if not isinstance(indicators, list) or not isinstance(examples, list) or not indicators:
        return False
    if not isinstance(parameters, dict) or not isinstance(limits, dict):
        return False
    return (
        all(isinstance(each, dict) and _is_indicator(each) for each in indicators)
        and all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in parameters.values())
        and {"intervals", "ranges", "themes", "styles", "drawings"} <= set(parameters)
        and all(isinstance(each, dict) and {"dailyMax", "maxResolution"} <= set(each) for each in limits.values())
        and all(isinstance(each, dict) and set(each) == {"description", "config"} for each in examples)
    )


def _is_indicator(value: dict[str, Any]) -> bool:
    texts = (value.get(name) for name in ("name", "displayName", "category"))
    inputs = value.get("inputs")
    return (
        all(isinstance(each, str) for each in texts)
        and isinstance(inputs, dict)
        and all(isinstance(each, dict) and {"type", "default", "description"} <= set(each) for each in inputs.values())
    )
