"""docs/outages.md, made of what the walks have seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.operations.outages.faults import CONDITIONS
from tests.operations.outages.station import TIMEOUT
from tests.operations.outages.visits import Cell, Visit

PAGE = Path(__file__).resolve().parents[3] / "docs" / "outages.md"
ACTIONS = (
    "price",
    "candles",
    "positions",
    "opening an order",
    "reducing a position",
    "cancelling an order",
    "setting an alert",
    "an alert set before",
    "saving a decision",
    "a backtest of a canonical strategy",
)
_WAITED = TIMEOUT * 0.45
"""Seconds: a little less than the shortest time-out of a store."""
_TIMED_OUT = re.compile(r"took longer than N s|did not answer in time|in N s$|for too long$")
INTRODUCTION = """\
# Outages

What users see while a store fails, and what is there when it works again. A test walks every condition of every store
with real files, servers and disks (`tests/operations/outages`) and writes this page. It fails if the page is out of date;
`OPENBELL_WRITE_SNAPSHOTS=1` writes the page anew.

The desk runs as `openbell up` runs it, on the simulated market, with its collector and its engine. Before each outage an
order rests, a market order waits for its fill, and an alert waits for the next minute. Two minutes close during the
outage. Each row of a table is one call then.

- **works**: the result is the usual one. A number leads to what the result says about itself, or lacks.
- **refused**: the call returns an error. A number leads to its text, after its code if the contract has codes.
- **waits**: the call returns when a time-out of the store or of the call (`OPENBELL_TIMEOUT`) is over.

A refusal that says *it may still take effect* is uncertain: an order or a cancellation goes on when its caller no longer
waits. Send orders with a `client_order_id`, and send them again after such an error: the first order is returned if
there is one.

After each outage the test repeats all calls that were not acknowledged and lets two minutes close. Then it checks that

- every acknowledged order, cancellation, alert and decision is there exactly once, and nothing that was refused for certain;
- every market order has filled, every alert has fired once, and the position is the sum of the fills;
- every minute of the feed is stored, with its prices;
- `openbell verify` finds no fault.

The last row of a table has the result. An older copy of the records lacks what was acknowledged after it was made: the desk
refuses to use it until `openbell verify --adopt` accepts it, and the checks then expect what the copy has.
"""


def section(title: str, visits: Sequence[Visit]) -> str:
    """The part of the page about one store."""
    by_condition = {visit.condition: visit for visit in visits}
    assert set(by_condition) == set(CONDITIONS), title
    numbers: dict[str, int] = {}
    rows = [_row(action, (_shown(by_condition[each], action, numbers) for each in CONDITIONS)) for action in ACTIONS]
    after = _row("**afterwards**", (_afterwards(by_condition[each]) for each in CONDITIONS))
    lines = [
        f"## {title}",
        "",
        *(f"- **{each}**: {_how(by_condition[each])}" for each in CONDITIONS),
        "",
        _row("", CONDITIONS),
        "|---" * (len(CONDITIONS) + 1) + "|",
        *rows,
        after,
        "",
        *(f"{number}. {text}" for text, number in numbers.items()),
    ]
    return "\n".join(lines) + "\n"


def page(visits: Sequence[Visit]) -> str:
    """The whole page."""
    titles = list(dict.fromkeys(visit.store for visit in visits))
    parts = [section(title, [visit for visit in visits if visit.store == title]) for title in titles]
    return "\n".join([INTRODUCTION, *parts])


def comparable(text: str) -> list[str]:
    """The lines of the page with messages in the place of their numbers, so that pages of two runs can be compared.

    Two time-outs of the same length race: any message of a time-out equals any other.
    """
    return [line for part in text.split("\n## ") for line in _with_messages(part)]


def _with_messages(part: str) -> Iterator[str]:
    """The lines of a section."""
    messages = {
        number: "a time-out" if _TIMED_OUT.search(message) else message
        for number, message in re.findall(r"^(\d+)\. (.*)$", part, re.MULTILINE)
    }
    for line in part.splitlines():
        if not re.match(r"\d+\. ", line):
            yield re.sub(r"\[(\d+)\]", lambda found: messages[found[1]], line.replace("waits, ", ""))


def _row(first: str, cells: Iterator[str] | Sequence[str]) -> str:
    return "| " + " | ".join([first, *cells]) + " |"


def _how(visit: Visit) -> str:
    return f"not possible, {visit.how}" if visit.impossible else visit.how


def _shown(visit: Visit, action: str, numbers: dict[str, int]) -> str:
    if visit.impossible:
        return "—"
    cell = visit.cells[action]
    words = [_waits(visit, cell), "works" if cell.works else "refused"]
    if cell.text:
        words.append(f"[{numbers.setdefault(cell.text, len(numbers) + 1)}]")
    return " ".join(filter(None, words))


def _waits(visit: Visit, cell: Cell) -> str:
    """Whether a call has waited for a store that does not answer."""
    return "waits," if visit.condition == "stalled" and cell.seconds >= _WAITED else ""


def _afterwards(visit: Visit) -> str:
    if visit.impossible:
        return "—"
    return "; ".join(visit.faults) or "nothing lost, nothing doubled"
