"""The limits of each plan, as OPENBELL_CHART_API_PLAN sets them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from openbell.charts.config.choices import LARGEST, PLANS
from openbell.gateway.app import Gateway
from openbell.gateway.chart_img.endpoint import PlanLimits
from tests.gateway.chart_img.requests import AS_OF, LIST, SMALL, STORAGE, ask, draw, fault, shown
from tests.gateway.streamable.gateways import Inside

LINE = {"name": "Horizontal Line", "input": {"price": 90_000}}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_limits_size_parameters_and_storage(tmp_path: Path, name: str) -> None:
    plan = PLANS[name]
    with Inside(tmp_path, AS_OF=AS_OF, CHART_API_PLAN=name.lower()) as gateway:
        # A chart of the largest size and with the most parameters; it is the first of the burst.
        most = {**SMALL, "width": plan.width, "height": plan.height, "drawings": [LINE] * (plan.parameters - 1)}
        stored = draw(gateway, {**most, "studies": ["Volume"]}, STORAGE).json
        lived = datetime.fromisoformat(stored["expireAt"]) - datetime.fromisoformat(stored["createdAt"])
        assert lived == timedelta(days=plan.storage_days)
        resolution = f"Exceed Max Usage Resolution Limit ({plan.width}x{plan.height})"
        wide = {**SMALL, "width": plan.width + 1, "height": 300}
        assert fault(draw(gateway, wide, who="bob"), 403) == resolution
        assert fault(draw(gateway, {**SMALL, "height": plan.height + 1}, who="bob"), 403) == resolution
        more = {**SMALL, "drawings": [LINE] * plan.parameters, "studies": ["Volume"]}
        assert fault(draw(gateway, more, who="bob"), 403) == f"Exceed Max Usage Parameter Limit ({plan.parameters})"


@pytest.mark.parametrize("name", ["BASIC", "PRO"])
def test_requests_beyond_the_rate_are_refused_with_the_time_to_wait(tmp_path: Path, name: str) -> None:
    plan = PLANS[name]
    with Inside(tmp_path, AS_OF=AS_OF, CHART_API_PLAN=name) as gateway:
        answers = [ask(gateway, LIST) for _ in range(plan.burst * 3)]
    refused = [each for each in answers if each.status == 429]
    assert {each.status for each in answers[: plan.burst]} == {200}
    assert fault(refused[0], 429) == "Too Many Requests"
    assert refused[0]["retry-after"] == "1"
    left = [int(each["x-ratelimit-remaining"] or "") for each in answers if each.status == 200]
    assert left == list(range(plan.per_day - 1, plan.per_day - 1 - len(left), -1)), "a refused request does not count"


@pytest.mark.parametrize("name", PLANS)
def test_each_plan_has_its_burst(name: str) -> None:
    plan = PLANS[name]
    limits = PlanLimits(plan)
    refusals = [limits.take("alice") for _ in range(plan.burst + 3)]
    assert refusals[: plan.burst] == [None] * plan.burst
    assert refusals[-1] is not None
    assert refusals[-1].message == "Too Many Requests"


def test_a_day_has_its_number_of_requests_and_each_principal_its_own(tmp_path: Path) -> None:
    def few(gateway: Gateway) -> None:
        gateway._charts._limits = PlanLimits(replace(LARGEST, per_day=3))

    with Inside(tmp_path, prepare=few, AS_OF=AS_OF) as gateway:
        answers = [draw(gateway, SMALL) for _ in range(3)]
        assert [each["x-ratelimit-remaining"] for each in answers] == ["2", "1", "0"]
        for each in (draw(gateway, SMALL), draw(gateway, SMALL, STORAGE), ask(gateway, LIST)):
            assert fault(each, 429) == "Limit Exceeded"
            assert 1 <= int(each["retry-after"] or "") <= 86_400
        assert shown(draw(gateway, SMALL, who="bob")).size == (400, 300)


def test_a_day_of_utc_has_its_number_of_requests() -> None:
    now = [86_400.0 * 20_000 + 86_399.0]
    limits = PlanLimits(PLANS["PRO"], lambda: now[0])
    limits._counts["alice"], limits._day = 499, 20_000
    assert limits.take("alice") is None
    assert limits.remaining("alice") == 0
    refusal = limits.take("alice")
    assert refusal is not None
    assert (refusal.status, refusal.message, refusal.seconds) == (429, "Limit Exceeded", 1)
    assert limits.take("bob") is None
    now[0] += 1
    assert limits.take("alice") is None
    assert limits.remaining("alice") == 499


def test_a_plan_that_does_not_exist_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="OPENBELL_CHART_API_PLAN"):
        Inside(tmp_path, CHART_API_PLAN="gold")
