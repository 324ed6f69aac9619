"""The options --from and --to of commands that read history."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from openbell.market.clock import parse_time
from openbell.market.errors import InvalidParameter

Since = Annotated[
    str, typer.Option("--from", metavar="TIME", help="The first time: a year (2010), a month, a day or ISO 8601.")
]
Until = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="The time after the last bar; by default the present.")
]


def moment(text: str, option: str) -> int:
    """Returns epoch seconds of a year, a month, a day or a time. Raises `InvalidParameter`."""
    whole = re.sub(r"^(\d{4})$", r"\1-01-01", text.strip())
    whole = re.sub(r"^(\d{4}-\d\d)$", r"\1-01", whole)
    try:
        return int(parse_time(whole))
    except InvalidParameter:
        raise InvalidParameter(
            f"{option} {text[:40]!r} is no time: write 2010, 2010-06, 2010-06-30 or ISO 8601"
        ) from None
