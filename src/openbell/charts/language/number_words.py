"""Numbers as words."""

from __future__ import annotations

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
SMALL = {word: value for value, word in enumerate(_UNITS.split())} | {
    word: 20 + 10 * at for at, word in enumerate(_TENS.split())
}
HUNDREDS = frozenset({"hundred"})
THOUSANDS = {"thousand": 1000, "million": 1_000_000}
