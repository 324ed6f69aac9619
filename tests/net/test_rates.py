"""One bucket for those who wait and for those who are refused: both let the same requests through."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openbell.net.rates import Bucket, Buckets, Rate


def test_a_burst_goes_at_once_and_the_next_ones_at_the_rate() -> None:
    bucket = Bucket(Rate(per_minute=60, burst=3))
    assert [bucket.reserve(100.0) for _ in range(5)] == [0.0, 0.0, 0.0, 1.0, 2.0]
    assert bucket.wait(102.0) == 1.0
    assert bucket.reserve(102.0, longest=0.5) is None
    assert bucket.reserve(102.0, longest=1.0) == 1.0


@given(st.floats(1, 6000), st.integers(1, 20), st.lists(st.floats(0, 30), min_size=1, max_size=40))
def test_a_request_is_refused_exactly_if_it_would_have_to_wait(
    per_minute: float, burst: int, pauses: list[float]
) -> None:
    rate, now = Rate(per_minute, burst), 0.0
    waiting, refusing = Bucket(rate), Buckets(rate, 10)
    for pause in pauses:
        now += pause
        wait = waiting.wait(now)
        assert refusing.standing("a", now).wait == wait
        assert (refusing.standing("a", now).remaining > 0) == (wait == 0)
        assert refusing.take("a", now) == (wait or None)
        assert waiting.reserve(now, longest=0.0) == (None if wait else 0.0)


@given(st.floats(1, 6000), st.integers(1, 20))
def test_a_request_that_waits_as_long_as_it_was_told_is_let_through(per_minute: float, burst: int) -> None:
    buckets, now = Buckets(Rate(per_minute, burst), 10), 0.1
    for _ in range(50):
        if wait := buckets.take("a", now):
            now += wait
            assert buckets.take("a", now) is None
