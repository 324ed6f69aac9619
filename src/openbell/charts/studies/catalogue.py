"""All studies, and how they are found by any of their names."""

from __future__ import annotations

import re
from functools import cache

from openbell.charts.studies import averages, channels, momentum, volume
from openbell.charts.studies.study import SUFFIX, Study
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean


@cache
def all_studies() -> dict[str, Study]:
    """All studies by their name in chart configs, sorted by the vendor's name."""
    modules = (averages, channels, momentum, volume)
    found = sorted((each for module in modules for each in module.STUDIES), key=lambda each: each.title)
    return {each.name: each.with_keys() for each in found}


@cache
def _by_key() -> dict[str, Study]:
    table: dict[str, Study] = {}
    for study in all_studies().values():
        for name in (study.short, study.title, *study.phrases):
            table.setdefault(_key(name), study)
    # Names of configs and of the vendor take precedence over what people call a study.
    for study in all_studies().values():
        table[_key(study.title)] = study
    for study in all_studies().values():
        table[_key(study.short)] = study
    return table


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9%]", "", name.lower())


def find(name: str) -> Study:
    """Returns the study with a name of chart configs, of the vendor, or as people call it, in any case.

    Raises `InvalidParameter`, which suggests the nearest name, if there is none.
    """
    plain = name.removesuffix(SUFFIX)
    if (study := _by_key().get(_key(plain)) if len(name) <= 80 else None) is not None:
        return study
    titles = [study.title for study in all_studies().values()]
    ids = [study.short for study in all_studies().values()]
    advice = did_you_mean(plain[:80], titles) or did_you_mean(plain[:80], ids)
    raise InvalidParameter(f"no study {name[:80]!r}{advice or '; fetch_chart_documentation has them all'}")
