"""The port of upstreams: whoever answers requests of the quotes API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from openbell.desk.quotes.arche.requests import Params
from openbell.market.instruments import Instrument
from openbell.market.provenance import BarFacts

TRUTH = "x-openbell-truth"
"""The header of the gateway's responses that describes the data behind them."""


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """What is known about the bars behind an answer of this process."""

    instrument: Instrument | None = None
    """The only instrument of the answer, if there is just one."""
    newest: int | None = None
    """The end of the newest bar; of several prices, the end of the oldest."""
    bars: BarFacts = BarFacts()


@dataclass(frozen=True, slots=True)
class ArcheResponse:
    """A response of the quotes API."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case. `x-request-id` is always there: the id that was sent, or the API's own."""
    body: bytes
    facts: AnswerFacts | None = None
    """Set if this process has made the answer."""
    truth: Mapping[str, Any] | None = None
    """The truth header of the gateway of the same home, if that has made the answer."""


class Upstream(Protocol):
    """Answers requests of the quotes API."""

    async def get(self, path: str, params: Params, request_id: str) -> ArcheResponse:
        """Returns the response, also if it is an error. Raises `UpstreamUnreachable` and `UpstreamTooLarge`."""
