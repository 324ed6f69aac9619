"""The consensus: shares of all votes, and the confidence of those that have a signal."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.strategies.consensus import Action, Opinion, Vote, consensus_of

BUY, SELL, HOLD = Action.BUY, Action.SELL, Action.HOLD


@pytest.mark.parametrize(
    ("bullish", "bearish", "neutral", "expected"),
    [
        (7, 0, 3, Opinion.STRONG_BUY),
        (69, 0, 31, Opinion.BUY),
        (5, 0, 5, Opinion.BUY),
        (49, 0, 51, Opinion.NEUTRAL),
        (0, 7, 3, Opinion.STRONG_SELL),
        (1, 6, 3, Opinion.SELL),
        (5, 5, 0, Opinion.NEUTRAL),
        (0, 0, 4, Opinion.NEUTRAL),
        (1, 0, 0, Opinion.STRONG_BUY),
    ],
)
def test_half_of_all_votes_make_a_consensus_and_seventy_per_cent_a_strong_one(
    bullish: int, bearish: int, neutral: int, expected: Opinion
) -> None:
    votes = [Vote(BUY, 0.5)] * bullish + [Vote(SELL, 0.5)] * bearish + [Vote(HOLD, 0.5)] * neutral
    found = consensus_of(votes)
    assert (found.bullish, found.bearish, found.neutral, found.opinion) == (bullish, bearish, neutral, expected)


def test_the_confidence_is_the_mean_of_the_strategies_that_have_a_signal() -> None:
    votes = [Vote(BUY, 0.8), Vote(HOLD, 0.4), Vote(HOLD, None)]
    assert consensus_of(votes).confidence == pytest.approx(0.6)
    assert consensus_of([Vote(HOLD, None)]).confidence == 0.0


@given(st.lists(st.tuples(st.sampled_from(Action), st.floats(0, 1)), max_size=30))
def test_the_other_side_has_the_opposite_consensus(drawn: list[tuple[Action, float]]) -> None:
    other = {BUY: SELL, SELL: BUY, HOLD: HOLD}
    votes = [Vote(*each) for each in drawn]
    turned = [Vote(other[action], confidence) for action, confidence in drawn]
    pairs = {
        Opinion.STRONG_BUY: Opinion.STRONG_SELL,
        Opinion.BUY: Opinion.SELL,
        Opinion.NEUTRAL: Opinion.NEUTRAL,
        Opinion.SELL: Opinion.BUY,
        Opinion.STRONG_SELL: Opinion.STRONG_BUY,
    }
    one, two = consensus_of(votes), consensus_of(turned)
    assert two.opinion is pairs[one.opinion]
    assert (two.bullish, two.bearish, two.neutral) == (one.bearish, one.bullish, one.neutral)
    assert one.bullish + one.bearish + one.neutral == len(votes)


@given(st.lists(st.floats(0.01, 0.99), min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_the_votes_changes_nothing(confidences: list[float], chance: random.Random) -> None:
    votes = [Vote(BUY, each) for each in confidences]
    shuffled = chance.sample(votes, len(votes))
    assert consensus_of(shuffled) == consensus_of(votes)
