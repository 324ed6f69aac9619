"""The rules of promotion: each rule alone decides, and nothing is promoted back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openbell.strategies.implementations import Forward, ImplementationStatus, ValidationFigures, after, validation

GOOD = ValidationFigures(
    passed=True, why_not="", trades=40, evidence=25, proven=True, verdict="97 % sure after 60 tries"
)
WELL = Forward(trades=12, sharpe=0.8, drawdown=0.05, drawdown_before=0.2)


def test_what_passes_every_rule_is_validated() -> None:
    step = validation(GOOD)
    assert step.status is ImplementationStatus.VALIDATED
    assert step.reason == "25 walk-forward trades: 97 % sure after 60 tries"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"passed": False, "why_not": "its Sharpe falls"}, "its Sharpe falls"),
        ({"trades": 19}, "19 walk-forward trades"),
        ({"evidence": 3}, "its author may have seen these bars: 3 of 20 trades since its submission"),
        ({"proven": False, "verdict": "94 % sure"}, "25 walk-forward trades: 94 % sure"),
    ],
)
def test_one_rule_that_fails_keeps_a_candidate(changed: dict[str, object], words: str) -> None:
    step = validation(replace(GOOD, **changed))  # type: ignore[arg-type]
    assert step.status is ImplementationStatus.CANDIDATE
    assert words in step.reason


def test_enough_forward_trades_with_a_gain_deploy() -> None:
    step = after(ImplementationStatus.VALIDATED, WELL)
    assert step is not None
    assert step.status is ImplementationStatus.DEPLOYED
    assert after(ImplementationStatus.VALIDATED, replace(WELL, trades=9)) is None
    assert after(ImplementationStatus.VALIDATED, replace(WELL, sharpe=None)) is None
    assert after(ImplementationStatus.DEPLOYED, WELL) is None


@pytest.mark.parametrize("status", [ImplementationStatus.VALIDATED, ImplementationStatus.DEPLOYED])
def test_a_loss_or_a_large_drawdown_retires(status: ImplementationStatus) -> None:
    for forward in (replace(WELL, sharpe=-0.1), replace(WELL, drawdown=0.31, trades=1)):
        step = after(status, forward)
        assert step is not None
        assert step.status is ImplementationStatus.RETIRED
    assert after(status, replace(WELL, sharpe=-0.1, trades=9)) is None
    small = after(status, replace(WELL, drawdown=0.14, drawdown_before=0.01, trades=1))
    assert small is None, "a drawdown that was tiny before must not retire at the first loss"


@pytest.mark.parametrize("status", [ImplementationStatus.CANDIDATE, ImplementationStatus.RETIRED])
def test_what_is_not_active_stays_as_it_is(status: ImplementationStatus) -> None:
    assert after(status, WELL) is None
    assert after(status, replace(WELL, sharpe=-3.0)) is None
