"""Reads times by a strptime format, many at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from openbell.market.errors import InvalidParameter
from openbell.market.session_table import Times

Mask = npt.NDArray[np.bool_]
NAIVE = np.iinfo(np.int64).min
"""The offset of a time without a zone."""
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_GROUPS = {
    "Y": r"\d{4}",
    "y": r"\d{2}",
    "m": r"\d{1,2}",
    "d": r"\d{1,2}",
    "b": r"[A-Za-z]{3,9}",
    "H": r"\d{1,2}",
    "I": r"\d{1,2}",
    "M": r"\d{1,2}",
    "S": r"\d{1,2}",
    "f": r"\d{1,9}",
    "p": r"[AaPp]\.?[Mm]\.?",
    "z": r"[Zz]|UTC|GMT|(?:UTC|GMT)?[+-]\d{2}(?::?\d{2})?",
}
_EXPANDED = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M", "%B": "%b", "%%": "%"}
_WEEKDAY = "[A-Za-z]{2,9}"
_DIRECTIVE = re.compile(r"%.|\s+|[^%\s]+|%", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A strptime format as a regular expression with one group for each directive."""

    format: str
    regex: str
    groups: tuple[str, ...]

    @property
    def dates(self) -> bool:
        """Returns True if the format has no time of day."""
        return "H" not in self.groups and "I" not in self.groups


@dataclass(frozen=True, slots=True)
class Parsed:
    """Times as they are written, in seconds on the clock of their zone."""

    written: Times
    offset: Times
    """Seconds east of UTC, or `NAIVE`."""
    readable: Mask
    whole: Mask
    """False for times with a fraction of a second."""


def compiled(text: str) -> Pattern:
    """Returns the pattern of a strptime format. Raises `InvalidParameter` for a directive that cannot be used."""
    for short, long in _EXPANDED.items():
        if short != "%%":
            text = text.replace(short, long)
    words = _DIRECTIVE.findall(text)
    regex, groups = "", []
    for at, word in enumerate(words):
        name = word[1:] if word[0] == "%" and len(word) == 2 else ""
        if name in _GROUPS:
            if name in groups:
                raise InvalidParameter(f"--date-format {text!r} has %{name} twice")
            beside = [each for each in words[max(at - 1, 0) : at] + words[at + 1 : at + 2] if each[:1] == "%"]
            # Digits without a separator have their full width.
            form = r"\d{2}" if beside and name in "mdHIMS" else _GROUPS[name]
            regex += f"(?P<{name}>{form})"
            groups.append(name)
        elif name in {"a", "A"}:
            regex += _WEEKDAY
        elif word == "%%":
            regex += "%"
        elif word.isspace():
            regex += r"\s+"
        elif word[0] == "%":
            known = ", ".join(f"%{each}" for each in _GROUPS)
            raise InvalidParameter(f"--date-format {text!r}: {word} cannot be used; use {known}")
        else:
            regex += re.escape(word)
    if not (("Y" in groups or "y" in groups) and ("m" in groups or "b" in groups) and "d" in groups):
        raise InvalidParameter(f"--date-format {text!r} needs a year (%Y), a month (%m or %b) and a day (%d)")
    return Pattern(text, f"^(?:{regex})$", tuple(groups))


def parse(texts: Any, pattern: Pattern) -> Parsed:
    """Reads an Arrow array of texts without blanks around them."""
    from pyarrow import compute as pc

    found = pc.extract_regex(texts, pattern.regex)
    readable = np.asarray(pc.is_valid(found))
    cells = {name: pc.struct_field(found, [at]) for at, name in enumerate(pattern.groups)}

    def numbers(name: str, default: int = 0) -> Times:
        if name not in cells:
            return np.full(len(texts), default, dtype=np.int64)
        values: Times = np.asarray(cells[name].fill_null(str(default)).cast(pa.int64()))
        return values

    year = numbers("Y") if "Y" in cells else _four_digits(numbers("y"))
    month = _month_numbers(cells["b"]) if "b" in cells else numbers("m", 1)
    day, hour, minute, second = numbers("d", 1), numbers("H"), numbers("M"), numbers("S")
    good = readable & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60) & (year > 0)
    if "I" in cells:
        twelve = numbers("I", 1)
        good &= (twelve >= 1) & (twelve <= 12)
        hour = twelve % 12
        if "p" in cells:
            hour = hour + 12 * np.asarray(pc.starts_with(pc.utf8_lower(cells["p"].fill_null("a")), "p"))
    start = np.where(good, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    first = start.astype("datetime64[D]").astype(np.int64)
    good &= (day >= 1) & (day <= (start + 1).astype("datetime64[D]").astype(np.int64) - first)
    written = (first + day - 1) * 86400 + hour * 3600 + minute * 60 + second
    whole = np.ones(len(texts), dtype=bool)
    if "f" in cells:
        whole = np.asarray(pc.equal(pc.utf8_trim(cells["f"].fill_null("0"), "0"), ""))
    offset = _offsets(cells["z"]) if "z" in cells else np.full(len(texts), NAIVE)
    return Parsed(np.where(good, written, 0), offset, good, whole)


def _four_digits(years: Times) -> Times:
    """Returns the years of two digits as strptime reads them: 69 to 99 are of the 20th century."""
    return np.where(years < 69, 2000 + years, 1900 + years)


def _month_numbers(names: Any) -> Times:
    from pyarrow import compute as pc

    keys = pc.utf8_slice_codeunits(pc.utf8_lower(names.fill_null("")), 0, 3)
    found: Times = np.asarray(pc.index_in(keys, pa.array(MONTHS)).fill_null(-1)).astype(np.int64) + 1
    return found


def _offsets(texts: Any) -> Times:
    """Returns the seconds east of UTC of texts such as `Z`, `+02:00` and `-0400`."""
    encoded = texts.fill_null("Z").dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = np.array([offset_of(text) for text in encoded.dictionary.to_pylist()] or [0], dtype=np.int64)
    found: Times = values[np.asarray(encoded.indices)]
    return found


def offset_of(text: str) -> int:
    """Returns the seconds east of UTC of `Z`, `UTC`, `+02`, `+0200`, `+02:00` or `GMT+0200`."""
    text = text.removeprefix("UTC").removeprefix("GMT")
    if text[:1] not in {"+", "-"}:
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60
    return -seconds if text[0] == "-" else seconds
