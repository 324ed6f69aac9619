"""What is removed from texts from outside before they are shown."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.market.errors import FeedUnavailable
from openbell.market.foreign_text import one_visible_line, without_invisible

INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u2800\u3164\ufe0f\uffa0\U000e0100"


def test_no_character_of_an_invisible_category_is_left() -> None:
    every = "".join(chr(number) for number in range(sys.maxunicode + 1))
    left = {each for each in without_invisible(every) if unicodedata.category(each) in INVISIBLE}
    assert left == {"\n", "\t"}
    assert without_invisible(BLANK) == ""


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\x1b[2J\x1b[Hb", "ab"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x9b31mb\x9d0;t\x9cc", "abc"),
        ("a\x1bP1$r\x1b\\b", "ab"),
        ("a\x1b]52;c;never ended", "a"),
        ("a\x1bcb", "ab"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("pay \u202e001\u202c USD", "pay 001 USD"),
        ("x\U000e0049\U000e0067y", "xy"),
        ("Größe: 5 € 😀 日本 \u05d0", "Größe: 5 € 😀 日本 \u05d0"),
    ],
)
def test_sequences_and_marks_are_removed(text: str, seen: str) -> None:
    assert without_invisible(text) == seen
    assert one_visible_line(text) == seen.replace("\n", " ")


@given(st.text())
def test_what_is_shown_stays_as_it_is(text: str) -> None:
    once = without_invisible(text)
    assert without_invisible(once) == once
    assert "\x1b" not in once


def test_an_error_that_quotes_a_vendor_is_clean() -> None:
    error = FeedUnavailable("the vendor says: \x1b[2Jbusy\u202e", symbol="A\u200bB")
    assert (str(error), error.message, error.details) == ("the vendor says: busy",) * 2 + ({"symbol": "AB"},)
