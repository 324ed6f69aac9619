"""English words that mean nothing for a chart. A warning names the words of a sentence that are neither known nor here."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def common_words() -> frozenset[str]:
    """The words, in lower case."""
    return frozenset(files("openbell.charts.language").joinpath("common_words.txt").read_text("ascii").split())
