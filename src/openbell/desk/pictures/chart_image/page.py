"""An HTML page as a list of blocks: headings, tables, list items, code and paragraphs.

The standard parser needs quadratic time for some broken pages. It gets tags without attributes, all of them closed, and a
text without scripts, styles and comments; that takes linear time whatever the page is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

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
