"""When a position was opened, as the payloads of all servers state it."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from openbell.market.clock import iso
from openbell.trading.fills import FillTime

Precision = Annotated[Literal["minute"], Field(description="filled at an unknown time of the minute that begins then")]


class Opened(TypedDict):
    """The base of the types of positions."""

    opened_at: Annotated[str, Field(description="when its first fill happened; on paper, the open of its minute")]
    opened_at_precision: NotRequired[Precision]
    recorded_at: Annotated[str, Field(description="when that fill was recorded; on paper, when its minute closed")]


def opened(time: FillTime) -> Opened:
    """Returns when a position was opened and when that was recorded."""
    if time.exact:
        return {"opened_at": iso(time.at), "recorded_at": iso(time.recorded_at)}
    return {"opened_at": iso(time.at), "opened_at_precision": "minute", "recorded_at": iso(time.recorded_at)}
