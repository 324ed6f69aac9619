"""decisions-mcp: the rows of get_recent_decisions and save_decision."""

from __future__ import annotations

from tests.contracts.rows import row
from tests.contracts.tradestream.agent import Agent, check_cache
from tests.contracts.tradestream.calls import decision
from tests.contracts.tradestream.conftest import Desk
from tests.contracts.tradestream.schemas import check_parameters, check_words

# get_recent_decisions


@row("get_recent_decisions: name, parameters, types, defaults, maximum, enums, required")
def test_get_recent_decisions_has_the_contracts_parameters(decisions: Agent) -> None:
    check_parameters(decisions.tools["get_recent_decisions"], decisions.contract["get_recent_decisions"])


@row("get_recent_decisions: description of the tool and of its parameters")
def test_get_recent_decisions_is_described_in_the_contracts_words(decisions: Agent) -> None:
    check_words(decisions.tools["get_recent_decisions"], decisions.contract["get_recent_decisions"])


@row("get_recent_decisions: returns (fields and types)")
def test_get_recent_decisions_returns_the_contracts_fields(decisions: Agent) -> None:
    for more in ({"opportunity_score": 7.5}, {}):
        decisions.data("save_decision", **decision(symbol="NFLX", action="BUY", **more))
    items = decisions.returned("get_recent_decisions", symbol="NFLX", action="BUY")["items"]
    assert [each["opportunity_score"] for each in items] == [None, 7.5], "null if none was given"
    assert {(each["symbol"], each["action"], each["confidence"], each["reasoning"]) for each in items} == {
        ("NFLX", "BUY", 0.5, "because")
    }


@row("get_recent_decisions: INVALID_SYMBOL")
def test_decisions_on_no_symbol_are_invalid_symbol(decisions: Agent) -> None:
    assert decisions.code("get_recent_decisions", symbol="???") == "INVALID_SYMBOL"


@row("get_recent_decisions: INVALID_ACTION")
def test_decisions_of_another_action_are_invalid_action(decisions: Agent) -> None:
    assert decisions.code("get_recent_decisions", action="LONG") == "INVALID_ACTION"


@row("get_recent_decisions: DATABASE_ERROR")
def test_decisions_without_the_database_are_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["decisions"].code("get_recent_decisions", force_refresh=True) == "DATABASE_ERROR"


@row("get_recent_decisions: cache 30 s, force_refresh bypasses and refills")
def test_decisions_are_cached_for_30_seconds(decisions: Agent, journal: Desk) -> None:
    check_cache(decisions, "get_recent_decisions", 30, symbol="AMD")

    def seen(**given: bool) -> int:
        return len(decisions.data("get_recent_decisions", symbol="AMD", **given)["items"])

    before = seen()
    with journal.agent("decisions") as other:
        other.data("save_decision", **decision(symbol="AMD"))
    assert seen() == before, "what another process has written is not read yet"
    assert seen(force_refresh=True) == before + 1
    assert seen() == before + 1


# save_decision


@row("save_decision: name, parameters, types, defaults, maximum, enums, required")
def test_save_decision_has_the_contracts_parameters(decisions: Agent) -> None:
    check_parameters(decisions.tools["save_decision"], decisions.contract["save_decision"])


@row("save_decision: description of the tool and of its parameters")
def test_save_decision_is_described_in_the_contracts_words(decisions: Agent) -> None:
    check_words(decisions.tools["save_decision"], decisions.contract["save_decision"])


@row("save_decision: returns (fields and types)")
def test_save_decision_returns_the_contracts_fields(decisions: Agent) -> None:
    calls = [{"name": "get_candles", "arguments": {"symbol": "INTC"}}]
    saved = decisions.returned("save_decision", **decision(symbol="INTC", opportunity_score=3, tool_calls=calls))
    assert saved["saved"] is True
    (kept,) = decisions.data("get_recent_decisions", symbol="INTC")["items"]
    assert kept["decision_id"] == saved["decision_id"]


@row("save_decision: INVALID_SYMBOL")
def test_a_decision_on_no_symbol_is_invalid_symbol(decisions: Agent) -> None:
    assert decisions.code("save_decision", **decision(symbol="???")) == "INVALID_SYMBOL"


@row("save_decision: INVALID_ACTION")
def test_a_decision_for_another_action_is_invalid_action(decisions: Agent) -> None:
    assert decisions.code("save_decision", **decision(action="STRONG_BUY")) == "INVALID_ACTION"


@row("save_decision: INVALID_CONFIDENCE")
def test_a_confidence_outside_0_to_1_is_invalid_confidence(decisions: Agent) -> None:
    for confidence in (-0.1, 1.0000001, 87):
        assert decisions.code("save_decision", **decision(confidence=confidence)) == "INVALID_CONFIDENCE"


@row("save_decision: REASONING_TOO_LONG")
def test_a_reasoning_over_16384_characters_is_reasoning_too_long(decisions: Agent) -> None:
    assert decisions.code("save_decision", **decision(reasoning="x" * 16_385)) == "REASONING_TOO_LONG"
    assert decisions.data("save_decision", **decision(symbol="KO", reasoning="x" * 16_384))["saved"] is True


@row("save_decision: DATABASE_ERROR")
def test_a_decision_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["decisions"].code("save_decision", **decision()) == "DATABASE_ERROR"
