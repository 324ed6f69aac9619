"""The facts of the vendor's documentation: studies, allowed values, limits of plans and examples.

They are read from an HTML page as a list of blocks: headings, tables, list items, code and paragraphs. The standard parser
needs quadratic time for some broken pages. It gets tags without attributes, all of them closed, and a text without scripts,
styles and comments; that takes linear time whatever the page is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from openbell.charts.config.choices import INTERVALS, PLANS, PRESETS, STYLES, THEMES
from openbell.charts.config.model import kind_of
from openbell.market.foreign_text import visible_json

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
_HIDDEN = (
    ("<!--", "-->"),
    ("<script", "</script"),
    ("<style", "</style"),
    ("<template", "</template"),
    ("<svg", "</svg"),
)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,15}+)(?:[\s/][^<>]*+)?>")
_STRAY = re.compile(r"<(?!/?[a-z][a-z0-9]*>)")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKS = frozenset(
    "p div section article main aside nav header footer ul ol dl dt dd blockquote br hr body form".split()
)
_MOST_BLOCKS = 50_000


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
                value = visible_json(value)
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


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, and the parts of it that are marked as code."""

    text: str
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A part of a page. `kind` is heading, table, item, code or text."""

    kind: str
    rows: tuple[tuple[Piece, ...], ...]
    """One row with one piece, unless it is a table."""
    headings: tuple[str, ...] = ()
    """The headings that the block is under, from the largest."""

    @property
    def piece(self) -> Piece:
        """The first piece."""
        return self.rows[0][0]


def read_page(html: str) -> list[PageBlock]:
    """Returns the blocks of a page. Every text is a page, also a broken one."""
    reader = _Reader()
    reader.feed(_plain(html))
    reader.close()
    reader.end_block()
    return reader.blocks


def _plain(html: str) -> str:
    """Returns a page in which every `<` begins a tag without attributes."""
    for begin, end in _HIDDEN:
        html = _without(html, begin, end)
    tagged = _TAG.sub(lambda found: f"<{found[1]}{found[2].lower()}>", html)
    return _STRAY.sub("&lt;", tagged)


def _without(html: str, begin: str, end: str) -> str:
    """Returns a page without what is between two texts, in any case; one that is not closed lasts to the end."""
    lowered, kept, at = html.lower(), [], 0
    if len(lowered) != len(html):  # a few characters have lower-case forms of another length
        lowered = html
    while (first := lowered.find(begin, at)) >= 0:
        kept.append(html[at:first])
        last = lowered.find(end, first + len(begin))
        at = len(html) if last < 0 else lowered.find(">", last) + 1 or len(html)
    return "".join([*kept, html[at:]])


@dataclass
class _Text:
    """A piece that is being read."""

    parts: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    code: list[str] | None = None

    def add(self, text: str) -> None:
        self.parts.append(text)
        if self.code is not None:
            self.code.append(text)

    def end_code(self) -> None:
        if self.code is not None:
            self.codes.append(" ".join("".join(self.code).split()))
            self.code = None

    def piece(self, *, plain: bool) -> Piece:
        self.end_code()
        text = "".join(self.parts)
        return Piece(" ".join(text.split()) if plain else text.strip("\n"), tuple(filter(None, self.codes)))


class _Reader(HTMLParser):
    """Collects blocks. Tags that are not closed end with the next one of their kind."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[PageBlock] = []
        self._headings: dict[int, str] = {}
        self._kind = "text"
        self._text = _Text()
        self._table: list[list[Piece]] | None = None
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        _ = attrs
        if self._table is not None and tag != "table":
            self._in_table(tag)
        elif tag == "code":
            self._text.end_code()
            self._text.code = []
        elif tag in _HEADINGS or tag in {"li", "pre"} or tag in _BREAKS or tag == "table":
            if tag in _BREAKS and self._kind != "text":
                self._text.add("\n" if self._kind == "code" else " ")
                return
            self.end_block()
            self._kind = {"li": "item", "pre": "code"}.get(tag, tag if tag in _HEADINGS else "text")
            if tag == "table":
                self._table = []

    def _in_table(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._end_cell()
            self._in_cell = True
            if not self._table:
                self._rows().append([])
        elif tag == "tr":
            self._end_cell()
            self._rows().append([])
        elif tag == "code":
            self._text.end_code()
            self._text.code = []
        elif tag in _HEADINGS:  # a table that was never closed
            self._end_table()
            self._kind = tag
        else:
            self._text.add(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "code":
            self._text.end_code()
        elif self._table is not None:
            if tag in {"td", "th", "tr"}:
                self._end_cell()
            elif tag == "table":
                self._end_table()
        elif tag in _HEADINGS or tag in {"li", "pre"} or (tag in _BREAKS and self._kind == "text"):
            self.end_block()

    def handle_data(self, data: str) -> None:
        if self._table is None or self._in_cell:
            self._text.add(data)

    def end_block(self) -> None:
        """Add the block that is being read, if it has a text."""
        if self._table is not None:
            self._end_table()
        piece = self._text.piece(plain=self._kind != "code")
        level = _HEADINGS.get(self._kind)
        if level is not None and piece.text:
            self._headings = {each: text for each, text in self._headings.items() if each < level} | {level: piece.text}
        if piece.text:
            self._add("heading" if level is not None else self._kind, ((piece,),))
        self._kind, self._text = "text", _Text()

    def _end_cell(self) -> None:
        if self._in_cell:
            self._rows()[-1].append(self._text.piece(plain=True))
        self._in_cell, self._text = False, _Text()

    def _end_table(self) -> None:
        self._end_cell()
        rows = tuple(tuple(row) for row in self._rows() if row)
        self._table = None
        if rows:
            self._add("table", rows)

    def _rows(self) -> list[list[Piece]]:
        if self._table is None:
            self._table = []
        return self._table

    def _add(self, kind: str, rows: tuple[tuple[Piece, ...], ...]) -> None:
        if len(self.blocks) < _MOST_BLOCKS:
            self.blocks.append(PageBlock(kind, rows, tuple(self._headings[level] for level in sorted(self._headings))))
