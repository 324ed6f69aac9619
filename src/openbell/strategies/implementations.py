"""An implementation: a spec with parameters on one series, and how far it has been promoted.

Its id is computed from its content and from the bars, costs and generation of its search, so that two processes that search
the same bars find the same implementation. A spec that changes has another fingerprint, and therefore other implementations,
which begin as candidates.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from openbell.strategies.spec import Number, Spec


class Status(StrEnum):
    """How far an implementation has been promoted; see `promotion`."""

    CANDIDATE = "CANDIDATE"
    VALIDATED = "VALIDATED"
    DEPLOYED = "DEPLOYED"
    RETIRED = "RETIRED"

    @property
    def active(self) -> bool:
        """Whether its signals are followed and count in the consensus."""
        return self in {Status.VALIDATED, Status.DEPLOYED}


@dataclass(frozen=True, slots=True)
class Implementation:
    """A spec with parameters on one series."""

    id: str
    principal: str
    """The owner of its spec; empty for canonical specs, which everyone sees."""
    spec_id: str
    fingerprint: str
    """Of the spec that it was made of."""
    symbol: str
    timeframe: str
    parameters: dict[str, Number]
    status: Status
    reason: str
    """Why it has this status."""
    first: int
    """Open time of the first bar that its indicators are computed from."""
    trained_until: int
    """Its parameters were chosen on bars before this time."""
    found_at: float
    """When it was found. Later bars are its forward performance."""
    changed_at: float
    """When its status changed last."""
    tries: int
    """How many strategies were tried on this series when it was found."""
    figures: dict[str, Any]
    """The figures that its status was decided by, and the bars and costs of its search."""

    @property
    def costs(self) -> list[float]:
        """Fee and slippage of its search, as shares."""
        return list(self.figures["costs"])

    @property
    def content(self) -> str:
        """What it trades, apart from names; see `content_of`."""
        return str(self.figures["content"])

    @property
    def generation(self) -> int:
        """How often its series had been judged anew when it was found, from 1 on."""
        return int(self.figures["generation"])

    @property
    def attempt(self) -> int:
        """How often its spec, before a change, had been tried in the same generation."""
        return int(self.figures["attempt"])


def one_of_each(found: Iterable[Implementation]) -> list[Implementation]:
    """Returns the first implementation of each content on each series, canonical ones before others: one vote each."""
    order = sorted(found, key=lambda each: (bool(each.principal), each.found_at, each.id))
    firsts: dict[object, Implementation] = {}
    for each in order:
        firsts.setdefault((each.symbol, each.timeframe, each.content), each)
    return list(firsts.values())


def fingerprint_of(spec: Spec) -> str:
    """Returns a hash of everything in a spec that decides what it trades; names and descriptions are left out."""
    body = asdict(spec)
    for each in ("name", "description", "idea", "complexity"):
        body.pop(each)
    return _hash(body)


def implementation_id(
    principal: str,
    spec_id: str,
    fingerprint: str,
    series: tuple[str, str],
    parameters: Mapping[str, Number],
    basis: Any,
) -> str:
    """Returns the id of an implementation.

    `series` is its symbol and timeframe, `basis` identifies its search.
    """
    values = {name: float(value) for name, value in parameters.items()}
    return f"impl_{_hash([principal, spec_id, fingerprint, series, values, basis])[:16]}"


def _hash(body: object) -> str:
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()
