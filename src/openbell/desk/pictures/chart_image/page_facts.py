"""The facts of the vendor's documentation: studies, allowed values, limits of plans and examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from openbell.charts.config.choices import INTERVALS, PLANS, PRESETS, STYLES, THEMES
from openbell.charts.config.model import kind_of
from openbell.desk.pictures.chart_image.page import PageBlock, Piece, read_page

PARAMETERS = {
    "intervals": ("interval", INTERVALS, re.compile(r"\d{1,3}[mhDWMY]")),
    "ranges": ("range", PRESETS, re.compile(r"\d{1,3}[DMY]|ALL|[DWMY]TD")),
    "themes": ("theme", THEMES, re.compile(r"[a-z]{2,20}")),
    "styles": ("style", STYLES, re.compile(r"[a-z]+([A-Z][a-z]+)*")),
}
"""The lists of allowed values: the vendor's parameter, the values that are known here, and the form of others."""
_LEAST_VALUES = 2
_LEAST_STUDIES = 3
_MOST_STUDIES, _MOST_EXAMPLES = 500, 20
_LONGEST_CODE = 20_000
_WORD = re.compile(r"[A-Za-z0-9]+")
_TITLE = re.compile(r"[A-Za-z][A-Za-z0-9 %/'&().+-]{1,59}")
_INPUT_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")


@dataclass(slots=True)
class PageFacts:
    """What was found on a page. Parts that it does not have are empty."""

    studies: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The inputs of each study by the vendor's names, with their defaults."""
    parameters: dict[str, list[str]] = field(default_factory=dict)
    limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Fields of the contract's `rateLimits` by plan."""
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def useful(self) -> bool:
        """True if the page can be the documentation: an error page or a sign-in page has nothing of it."""
        return len(self.studies) >= _LEAST_STUDIES or bool(self.parameters) or bool(self.limits)


def read_facts(html: str, titles: frozenset[str]) -> PageFacts:
    """Returns the facts of a page. `titles` are the vendor's names of the studies that are known here."""
    blocks, facts = read_page(html), PageFacts()
    for name, (word, known, form) in PARAMETERS.items():
        found = max(_value_lists(blocks, word, known, form), key=len, default=[])
        if found:
            facts.parameters[name] = found
    for block in blocks:
        if block.kind == "table":
            _read_limits(block, facts.limits)
        for value in _json_in(block):
            _read_json(value, block, facts)
        _read_titles(block, titles, facts.studies)
    return facts


def _value_lists(
    blocks: Sequence[PageBlock], word: str, known: tuple[str, ...], form: re.Pattern[str]
) -> Iterator[list[str]]:
    """Yields the values of a parameter: of the row of a table that it begins, or of the blocks under its heading."""
    named = {word, f"{word}s"}
    under: dict[tuple[str, ...], list[Piece]] = {}
    for block in blocks:
        if block.kind == "table":
            for row in block.rows:
                if row[0].text.strip("`*: ").lower() in named:
                    yield _values(row[1:], known, form)
        if (
            block.kind in {"item", "text", "table"}
            and block.headings
            and block.headings[-1].strip(": ").lower() in named
        ):
            under.setdefault(block.headings, []).extend(piece for row in block.rows for piece in row[:1])
    for pieces in under.values():
        yield _values(pieces, known, form)


def _values(pieces: Sequence[Piece], known: tuple[str, ...], form: re.Pattern[str]) -> list[str]:
    """Returns the allowed values in some texts: what is marked as code, or else the words that are known here."""
    marked = [word for piece in pieces for code in piece.codes for word in _WORD.findall(code) if form.fullmatch(word)]
    words = [word for piece in pieces for word in _WORD.findall(piece.text)]
    for found in (marked, [word for word in words if word in known]):
        if sum(word in known for word in set(found)) >= _LEAST_VALUES:
            return list(dict.fromkeys(found))[:100]
    return []


def _read_limits(block: PageBlock, limits: dict[str, dict[str, Any]]) -> None:
    """Adds the limits of a table that has the plans in its first column or in its first row."""
    rows = [[piece.text for piece in row] for row in block.rows]
    if sum(text.upper() in PLANS for text in rows[0]) > 1:
        width = max(map(len, rows))
        rows = [[row[at] if at < len(row) else "" for row in rows] for at in range(width)]
    labels = [text.lower() for text in rows[0]]
    for row in rows[1:]:
        plan = row[0].upper().strip()
        if plan in PLANS:
            found = _limits_of(dict(zip(labels[1:], row[1:], strict=False)))
            if found:
                limits.setdefault(plan, {}).update(found)


def _limits_of(cells: dict[str, str]) -> dict[str, Any]:
    """Returns fields of `rateLimits` in the cells of a plan, by the labels of the cells."""
    found: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    for label, text in cells.items():
        number = _number(text)
        size = re.search(r"(\d{3,5})\s*[x×*]\s*(\d{3,5})", text)
        if size and "custom" not in label:
            found["maxResolution"] = f"{size[1]}x{size[2]}"
        elif number is None:
            continue
        elif re.search(r"/\s*s|second", label) and "burst" not in label:
            found["requestsPerSecond"] = number
        elif re.search(r"dail|per day|/\s*day", label) and "expire" not in label and "storage" not in label:
            found["dailyMax"] = number
        elif re.search(r"stud|drawing|parameter", label):
            found["maxStudies"] = number
        elif "width" in label or "height" in label:
            sizes["width" if "width" in label else "height"] = number
    if len(sizes) == 2:
        found["maxResolution"] = f"{sizes['width']}x{sizes['height']}"
    return found


def _number(text: str) -> int | None:
    """Returns the number of a cell such as `3,000` or `35+`."""
    plain = re.fullmatch(r"(\d[\d,]{0,9})\+?(\s*[a-z/ ]+)?", text.strip().lower())
    return int(plain[1].replace(",", "")) if plain else None


def _json_in(block: PageBlock) -> Iterator[Any]:
    """Yields the JSON values in a block of code: all of it, or the part between the outermost brackets."""
    text = block.piece.text if block.kind == "code" else ""
    if not 2 < len(text) <= _LONGEST_CODE:
        return
    for begin, end in ("{}", "[]"):
        first, last = text.find(begin), text.rfind(end)
        if 0 <= first < last:
            try:
                value = json.loads(text[first : last + 1])
                json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
            except (ValueError, RecursionError):  # also for NaN, and for halves of characters
                continue
            yield value
            return


def _read_json(value: Any, block: PageBlock, facts: PageFacts) -> None:
    """Adds studies and an example that a JSON value has."""
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            continue
        if isinstance(each.get("symbol"), str) and ":" in each["symbol"]:
            config = {name: part for name, part in each.items() if name != "key"}
            if len(facts.examples) < _MOST_EXAMPLES and all(config != one["config"] for one in facts.examples):
                facts.examples.append({"description": " / ".join(block.headings[-2:])[:120], "config": config})
        studies = each.get("studies", [each] if "input" in each or "override" in each else [])
        for study in studies if isinstance(studies, list) else []:
            if isinstance(study, dict):
                _read_study(study, facts)


def _read_study(study: dict[str, Any], facts: PageFacts) -> None:
    name, inputs = study.get("name"), study.get("input")
    if not isinstance(name, str) or not _TITLE.fullmatch(name) or kind_of(name) is not None:
        return
    if len(facts.studies) < _MOST_STUDIES:
        kept = facts.studies.setdefault(name, {})
        for key, default in inputs.items() if isinstance(inputs, dict) else ():
            if _INPUT_KEY.fullmatch(key) and isinstance(default, str | int | float) and len(str(default)) <= 60:
                kept.setdefault(key, default)


def _read_titles(block: PageBlock, titles: frozenset[str], studies: dict[str, dict[str, Any]]) -> None:
    """Adds studies that a heading, a list or the first column of a table names."""
    if block.kind == "code":
        return
    for row in block.rows:
        for text in (row[0].text, *row[0].codes):
            if text in titles:
                studies.setdefault(text, {})
