"""The options --from and --to of commands that read history."""

from __future__ import annotations

from typing import Annotated

import typer

from openbell.market.clock import parse_time, whole_date
from openbell.market.errors import InvalidParameter

Since = Annotated[
    str, typer.Option("--from", metavar="TIME", help="The first time: a year (2010), a month, a day or ISO 8601.")
]
Until = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="The time after the last bar; by default the present.")
]


def moment(text: str, option: str) -> int:
    """Returns epoch seconds of a year, a month, a day or a time. Raises `InvalidParameter`."""
    try:
        return int(parse_time(whole_date(text)))
    except InvalidParameter:
        raise InvalidParameter(
            f"{option} {text[:40]!r} is no time: write 2010, 2010-06, 2010-06-30 or ISO 8601"
        ) from None
