"""Validation of chart configs for plans: the contract's example, every limit, and suggestions that make a config pass."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from openbell.charts.config.choices import PLANS
from openbell.charts.config.validation import plan_of, validate
from openbell.market.errors import InvalidParameter

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
PLAIN: dict[str, Any] = {"symbol": "BINANCE:BTCUSDT", "interval": "1h", "width": 800, "height": 600}


def test_the_contracts_example_is_refused_with_its_words() -> None:
    studies = [{"name": "BollingerBands@tv-basicstudies"}, {"name": "RSI@tv-basicstudies"}]
    found = validate({**PLAIN, "studies": studies, "width": 1920, "height": 1080}, plan_of("BASIC"), NOW)
    assert not found.valid
    assert [(each.field, each.message, each.severity) for each in found.problems] == [
        ("resolution", "Resolution 1920x1080 exceeds BASIC plan limit of 800x600", "error")
    ]
    assert found.suggestions == [
        "Reduce width to 800 and height to 600 for BASIC plan",
        "Upgrade to PRO plan for higher resolution",
    ]
    assert (found.within_limits, found.studies, found.plan.parameters) == (True, 2, 3)
    assert (found.resolution, found.plan.resolution) == ("1920x1080", "800x600")


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_each_plans_limits_hold_to_the_pixel_and_the_study(plan: Any) -> None:
    studies = [{"name": "MA", "inputs": {"length": at + 1}} for at in range(plan.parameters)]
    largest = {**PLAIN, "width": plan.width, "height": plan.height, "studies": studies}
    assert validate(largest, plan, NOW).valid
    wide = validate({**largest, "width": plan.width + 1}, plan, NOW)
    assert [each.field for each in wide.problems] == ["resolution"]
    line = {"type": "Horizontal Line", "coordinates": {"price": 1}}
    more = validate({**largest, "drawings": [line]}, plan, NOW)
    assert [each.field for each in more.problems] == ["drawings"]
    assert not more.within_limits


def test_following_the_suggestions_makes_a_config_pass() -> None:
    studies = [{"name": "MA", "inputs": {"length": at + 1}} for at in range(6)]
    raw = {**PLAIN, "width": 2000, "height": 500, "studies": studies}
    found = validate(raw, plan_of("BASIC"), NOW)
    width, height = map(int, re.findall(r"\d+", found.suggestions[0]))
    removed = next(int(text.split()[1]) for text in found.suggestions if text.startswith("Remove"))
    assert validate(
        {**raw, "width": width, "height": height, "studies": studies[removed:]}, plan_of("BASIC"), NOW
    ).valid
    plan = next(text.split()[2] for text in found.suggestions if "more studies" in text)
    assert validate({**raw, "width": 800}, plan_of(plan), NOW).valid


def test_a_range_with_too_many_bars_suggests_an_interval_that_shows_all() -> None:
    raw = {**PLAIN, "interval": "1m", "range": "1Y"}
    found = validate(raw, plan_of("PRO"), NOW)
    assert found.valid
    assert [each.severity for each in found.problems] == ["warning"]
    interval = found.suggestions[0].split()[3]
    assert validate({**raw, "interval": interval}, plan_of("PRO"), NOW).problems == ()


def test_what_can_be_drawn_but_badly_is_a_warning() -> None:
    few = validate({**PLAIN, "interval": "1W", "range": "7D"}, plan_of("PRO"), NOW)
    assert few.valid
    assert few.problems[0].message == "range 7D has 1 bar of 1W"
    assert few.suggestions == ["Set interval to 1D, or choose a longer range"]
    panels = [{"name": name} for name in ("RSI", "MACD", "Stochastic", "CCI", "ADX")]
    low = validate({**PLAIN, "height": 300, "studies": panels}, plan_of("PRO"), NOW)
    assert low.valid
    assert low.suggestions == ["Increase height to 420"]


def test_a_faulty_config_still_has_its_counts() -> None:
    found = validate({"symbol": "x", "studies": [{}, {}], "width": 5000}, plan_of("ULTRA"), NOW)
    assert not found.valid
    assert (found.studies, found.resolution) == (2, "5000x675")


def test_plans_are_found_in_any_case_and_suggested() -> None:
    assert plan_of("mega").name == "MEGA"
    with pytest.raises(InvalidParameter, match="BASIC, PRO, MEGA, ULTRA, ENTERPRISE"):
        plan_of("GOLD")
