"""Text from outside, as it is shown: specs, webhooks, reasoning, names in files, messages of vendors and clients.

Such a text may hold what nobody sees: sequences that command a terminal, marks that turn the direction of reading, and
characters without a shape, in which instructions for an agent can be hidden. `without_invisible` removes all of it.
Everything that prints to a terminal or writes a result passes such texts through here. Most are stored as they came, with
their origin; inbound webhooks are cleaned before they are stored.
"""

from __future__ import annotations

import re
from typing import Any

_SEQUENCES = re.compile(
    r"""
    (?: \x1b\[ | \x9b ) [0-?]* [ -/]* [@-~]                       # CSI: colours, the cursor, the screen
    | (?: \x1b[PX\]^_] | [\x90\x98\x9d-\x9f] ) .*? (?: \x07 | \x1b\\ | \x9c | \Z )  # OSC, DCS and others: up to their end
    | \x1b [ -/]* [0-~]                                             # other escapes
    """,
    re.VERBOSE | re.DOTALL,
)
_BREAKS = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""Ends of lines and pages other than the newline."""
UNSEEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"  # format characters
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # fillers, selectors of variants
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"  # zero width, directions, blank letters
    "\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # halves, private use, selectors
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U0010ffff"  # tags, more selectors, private use
    "]"
)


def without_invisible(text: str) -> str:
    """Returns a text without anything that is not seen; lines and tabs stay."""
    if not UNSEEN.search(text):
        return text
    return UNSEEN.sub("", _BREAKS.sub("\n", _SEQUENCES.sub("", text)))


def visible_json(value: Any) -> Any:
    """Returns a JSON value in which no name and no text has anything that is not seen."""
    if isinstance(value, str):
        return without_invisible(value)
    if isinstance(value, list):
        return [visible_json(each) for each in value]
    if isinstance(value, dict):
        return {without_invisible(name): visible_json(each) for name, each in value.items()}
    return value


def one_visible_line(text: str, longest: int | None = None) -> str:
    """Returns a text without anything that is not seen, in one line; `longest`: cut to so many characters, … included."""
    line = without_invisible(text).replace("\n", " ").replace("\t", " ")
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"
