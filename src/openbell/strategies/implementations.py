"""An implementation: a spec with parameters on one series, and the rules by which it is promoted.

Its id is computed from its content and from the bars, costs and generation of its search, so that two processes that search
the same bars find the same implementation. A spec that changes has another fingerprint, and therefore other implementations,
which begin as candidates.

CANDIDATE → VALIDATED → DEPLOYED, and RETIRED from either. VALIDATED is decided by bars that were not used to choose the
parameters (walk-forward): they must show better timing than the same exposure without any, after all tries. DEPLOYED is
decided by bars that did not exist yet when the implementation was found (forward performance on paper). Nothing is promoted
back: a retired implementation stays retired.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from openbell.market.plural import counted
from openbell.strategies.spec import Number, Spec

FEWEST_TRADES = 20
"""Walk-forward trades that VALIDATED needs."""
FEWEST_FORWARD = 10
"""Closed forward trades that DEPLOYED needs."""
FEWEST_TO_RETIRE = 10
"""Closed forward trades before a negative Sharpe ratio retires."""
WORSE_DRAWDOWN = 1.5
"""A forward drawdown of more than this multiple of the largest one before retires."""
_LEAST_DRAWDOWN = 0.1
"""A drawdown before that was smaller counts as this one."""


class ImplementationStatus(StrEnum):
    """How far an implementation has been promoted."""

    CANDIDATE = "CANDIDATE"
    VALIDATED = "VALIDATED"
    DEPLOYED = "DEPLOYED"
    RETIRED = "RETIRED"

    @property
    def active(self) -> bool:
        """Whether its signals are followed and count in the consensus."""
        return self in {ImplementationStatus.VALIDATED, ImplementationStatus.DEPLOYED}


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
    status: ImplementationStatus
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
    def tried(self) -> str:
        """What its search tried, apart from names."""
        return str(self.figures.get("tried", self.fingerprint))

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


@dataclass(frozen=True, slots=True)
class ValidationFigures:
    """The figures of an implementation when it is found."""

    passed: bool
    """Whether the walk-forward test passed."""
    why_not: str
    """Why it did not; empty if it did."""
    trades: int
    """Walk-forward: of all test parts."""
    evidence: int
    """Those of them whose bars the author of the spec cannot have seen; all of a canonical spec."""
    proven: bool
    """Whether the timing of that evidence is better than luck after all tries."""
    verdict: str
    """The same in words, with both probabilities."""


@dataclass(frozen=True, slots=True)
class Forward:
    """The figures of an implementation since it was found."""

    trades: int
    """Closed ones."""
    sharpe: float | None
    drawdown: float | None
    drawdown_before: float | None
    """The largest one of the test parts."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """A status, and the rule that gave it."""

    status: ImplementationStatus
    reason: str


def validation(found: ValidationFigures) -> Promotion:
    """Returns the status of a new implementation: VALIDATED, or CANDIDATE with the first rule that it fails."""
    if not found.passed:
        return Promotion(ImplementationStatus.CANDIDATE, found.why_not)
    if found.trades < FEWEST_TRADES:
        return Promotion(
            ImplementationStatus.CANDIDATE,
            f"it has {counted(found.trades, 'walk-forward trade')}, and {FEWEST_TRADES} are needed",
        )
    if found.evidence < FEWEST_TRADES:
        return Promotion(
            ImplementationStatus.CANDIDATE,
            f"its author may have seen these bars: {found.evidence} of {FEWEST_TRADES} trades since its submission",
        )
    status = ImplementationStatus.VALIDATED if found.proven else ImplementationStatus.CANDIDATE
    return Promotion(status, f"{counted(found.evidence, 'walk-forward trade')}: {found.verdict}")


def after(status: ImplementationStatus, forward: Forward) -> Promotion | None:
    """Returns the next step of an active implementation by its forward performance; None if it stays as it is."""
    if not status.active:
        return None
    sharpe, trades = forward.sharpe, forward.trades
    limit = WORSE_DRAWDOWN * max(forward.drawdown_before or 0.0, _LEAST_DRAWDOWN)
    if forward.drawdown is not None and forward.drawdown > limit:
        reason = f"the forward drawdown is {forward.drawdown:.1%}, more than {limit:.1%}"
        return Promotion(ImplementationStatus.RETIRED, f"{reason}, {WORSE_DRAWDOWN} times the largest one before")
    if trades >= FEWEST_TO_RETIRE and sharpe is not None and sharpe < 0.0:
        return Promotion(
            ImplementationStatus.RETIRED, f"the forward Sharpe ratio is {sharpe:.2f} after {trades} trades"
        )
    if status is ImplementationStatus.VALIDATED and trades >= FEWEST_FORWARD and sharpe is not None and sharpe > 0.0:
        return Promotion(
            ImplementationStatus.DEPLOYED, f"the forward Sharpe ratio is {sharpe:.2f} after {trades} trades"
        )
    return None
