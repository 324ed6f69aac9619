"""The consensus of the strategies of a symbol: how many are bullish, and whether that is a majority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum


class Action(StrEnum):
    """What a strategy advises."""

    BUY = "BUY"
    SELL = "SELL"
    HOLD = "HOLD"


class Opinion(StrEnum):
    """What most strategies advise."""

    STRONG_BUY = "STRONG_BUY"
    BUY = "BUY"
    NEUTRAL = "NEUTRAL"
    SELL = "SELL"
    STRONG_SELL = "STRONG_SELL"


@dataclass(frozen=True, slots=True)
class Vote:
    """The signal of one strategy. A strategy without a signal holds with no confidence."""

    action: Action
    confidence: float | None


@dataclass(frozen=True, slots=True)
class Consensus:
    """The votes of the strategies of one symbol."""

    bullish: int
    bearish: int
    neutral: int
    opinion: Opinion
    confidence: float
    """Mean confidence of the strategies that have a signal; 0 if none has."""


_STRONG, _MAJORITY = 0.7, 0.5


def consensus_of(votes: Sequence[Vote]) -> Consensus:
    """Returns the consensus: a side has it with half of all votes, and strongly with 70 %. With half for each, neutral."""
    bullish = sum(vote.action is Action.BUY for vote in votes)
    bearish = sum(vote.action is Action.SELL for vote in votes)
    known = [vote.confidence for vote in votes if vote.confidence is not None]
    return Consensus(
        bullish,
        bearish,
        len(votes) - bullish - bearish,
        _opinion(bullish, bearish, len(votes)),
        fsum(known) / len(known) if known else 0.0,  # the same in whatever order the votes come
    )


def _opinion(bullish: int, bearish: int, total: int) -> Opinion:
    if not total or bullish == bearish:
        return Opinion.NEUTRAL
    if bullish >= _MAJORITY * total:
        return Opinion.STRONG_BUY if bullish >= _STRONG * total else Opinion.BUY
    if bearish >= _MAJORITY * total:
        return Opinion.STRONG_SELL if bearish >= _STRONG * total else Opinion.SELL
    return Opinion.NEUTRAL
