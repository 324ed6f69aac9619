"""What payloads state about their data beside the numbers: the source, the session of the market, and the desk's time."""

from __future__ import annotations

from collections.abc import Collection

from typing_extensions import TypedDict

from openbell.market.instruments import Instrument
from openbell.market.provenance import Source
from openbell.protocol.call import Call, session_and_time
from openbell.protocol.truth import data_source


class StatedOfAccount(TypedDict):
    """The base of the types of results about an account: no session, because each position is in a market of its own."""

    data_source: str
    as_of: str


class Stated(StatedOfAccount):
    """The base of the types of results that rest on market data, for contracts that allow more fields than theirs."""

    session: str


def stated(call: Call, instrument: Instrument | None = None, sources: Collection[Source] = frozenset()) -> Stated:
    """Returns the source of the bars, the session of the instrument's market (else of stocks), and the time of the call."""
    session, as_of = session_and_time(call, instrument)
    return {"data_source": data_source(call.desk, instrument, sources), "session": session, "as_of": as_of}


def stated_of_account(call: Call) -> StatedOfAccount:
    """Returns the source of the bars that value an account, and the time of the call."""
    return {"data_source": data_source(call.desk, None, frozenset()), "as_of": session_and_time(call, None)[1]}
