"""strategy-db-mcp: the rows of get_top_specs, get_implementations and submit_new_spec."""

from __future__ import annotations

from tests.contracts.rows import row
from tests.contracts.tradestream.agent import Agent, check_cache
from tests.contracts.tradestream.calls import spec
from tests.contracts.tradestream.conftest import Desk
from tests.contracts.tradestream.schemas import check_parameters, check_words, without

# get_top_specs


@row("get_top_specs: name, parameters, types, defaults, maximum, enums, required")
def test_get_top_specs_has_the_contracts_parameters(strategy_db: Agent) -> None:
    check_parameters(strategy_db.tools["get_top_specs"], strategy_db.contract["get_top_specs"])


@row("get_top_specs: description of the tool and of its parameters")
def test_get_top_specs_is_described_in_the_contracts_words(strategy_db: Agent) -> None:
    check_words(strategy_db.tools["get_top_specs"], strategy_db.contract["get_top_specs"])


@row("get_top_specs: returns (fields and types)")
def test_get_top_specs_returns_the_contracts_fields(strategy_db: Agent) -> None:
    made = strategy_db.data("submit_new_spec", **spec("NOT_TRIED"))["spec_id"]
    items = strategy_db.returned("get_top_specs", limit=100)["items"]
    means = [each["avg_sharpe"] for each in items if each["avg_sharpe"] is not None]
    assert means == sorted(means, reverse=True)
    assert all(each["implementations_count"] for each in items if each["avg_sharpe"] is not None)
    listed = strategy_db.returned("get_top_specs", source="LLM_GENERATED", force_refresh=True)["items"]
    (own,) = (each for each in listed if each["spec_id"] == made)
    assert (own["spec_id"], own["avg_sharpe"], own["implementations_count"]) == (made, None, 0)


@row("get_top_specs: INVALID_SOURCE")
def test_specs_of_another_source_are_invalid_source(strategy_db: Agent) -> None:
    assert strategy_db.code("get_top_specs", source="MINE") == "INVALID_SOURCE"


@row("get_top_specs: DATABASE_ERROR")
def test_specs_without_the_database_are_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["strategy-db"].code("get_top_specs", force_refresh=True) == "DATABASE_ERROR"


@row("get_top_specs: cache 60 s, force_refresh bypasses and refills")
def test_specs_are_cached_for_60_seconds(strategy_db: Agent, research: Desk) -> None:
    check_cache(strategy_db, "get_top_specs", 60, source="LLM_GENERATED")

    def seen(**given: bool) -> int:
        return int(strategy_db.data("get_top_specs", source="LLM_GENERATED", **given)["pagination"]["total"])

    before = seen()
    with research.agent("strategy-db") as other:
        other.data("submit_new_spec", **spec("OF_ANOTHER_PROCESS"))
    assert (seen(), seen(force_refresh=True), seen()) == (before, before + 1, before + 1)


# get_implementations


@row("get_implementations: name, parameters, types, defaults, maximum, enums, required")
def test_get_implementations_has_the_contracts_parameters(strategy_db: Agent) -> None:
    check_parameters(strategy_db.tools["get_implementations"], strategy_db.contract["get_implementations"])


@row("get_implementations: description of the tool and of its parameters")
def test_get_implementations_is_described_in_the_contracts_words(strategy_db: Agent) -> None:
    check_words(strategy_db.tools["get_implementations"], strategy_db.contract["get_implementations"])


@row("get_implementations: returns (fields and types)")
def test_get_implementations_returns_the_contracts_fields(strategy_db: Agent) -> None:
    items = strategy_db.returned("get_implementations", spec_id="BBAND_WILLIAMS_R", status="ALL")["items"]
    assert items
    for each in items:
        assert each["symbol"] == "BTC/USD"
        assert each["status"] in {"CANDIDATE", "VALIDATED", "DEPLOYED", "RETIRED"}
        assert (each["forward_sharpe"], each["forward_accuracy"]) == (None, None), "no trade since it was found"
    counts = {
        status: strategy_db.data("get_implementations", spec_id="BBAND_WILLIAMS_R", status=status)["pagination"][
            "total"
        ]
        for status in ("CANDIDATE", "VALIDATED", "DEPLOYED", "RETIRED")
    }
    assert sum(counts.values()) == len(items)
    default = strategy_db.data("get_implementations", spec_id="BBAND_WILLIAMS_R")
    assert default["pagination"]["total"] == counts["VALIDATED"]


@row("get_implementations: SPEC_NOT_FOUND")
def test_implementations_of_no_spec_are_spec_not_found(strategy_db: Agent) -> None:
    assert strategy_db.code("get_implementations", spec_id="nobody") == "SPEC_NOT_FOUND"


@row("get_implementations: INVALID_STATUS")
def test_implementations_of_another_status_are_invalid_status(strategy_db: Agent) -> None:
    assert strategy_db.code("get_implementations", spec_id="SMA_RSI", status="BEST") == "INVALID_STATUS"


@row("get_implementations: DATABASE_ERROR")
def test_implementations_without_the_database_are_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["strategy-db"].code("get_implementations", spec_id="SMA_RSI") == "DATABASE_ERROR"


@row("get_implementations: cache 30 s, force_refresh bypasses and refills")
def test_implementations_are_cached_for_30_seconds(strategy_db: Agent) -> None:
    check_cache(strategy_db, "get_implementations", 30, spec_id="SMA_RSI")


# submit_new_spec


@row("submit_new_spec: name, parameters, types, defaults, maximum, enums, required")
def test_submit_new_spec_has_the_contracts_parameters(strategy_db: Agent) -> None:
    check_parameters(strategy_db.tools["submit_new_spec"], strategy_db.contract["submit_new_spec"])


@row("submit_new_spec: description of the tool and of its parameters")
def test_submit_new_spec_is_described_in_the_contracts_words(strategy_db: Agent) -> None:
    check_words(strategy_db.tools["submit_new_spec"], strategy_db.contract["submit_new_spec"])


@row("submit_new_spec: returns (fields and types)")
def test_submit_new_spec_returns_the_contracts_fields(strategy_db: Agent) -> None:
    made = strategy_db.returned("submit_new_spec", **spec("RETURNED"))
    assert (made["created"], made["validation_errors"]) == (True, [])
    listed = strategy_db.data("get_top_specs", source="LLM_GENERATED", limit=100)["items"]
    assert made["spec_id"] in {each["spec_id"] for each in listed}


@row("submit_new_spec: INVALID_NAME (name 'missing or invalid')")
def test_a_spec_without_a_valid_name_is_invalid_name(strategy_db: Agent) -> None:
    for name in ("", "!", "x" * 1000):
        assert strategy_db.code("submit_new_spec", **spec(name)) == "INVALID_NAME"
    assert strategy_db.code("submit_new_spec", **without(spec("NEW"), "name")) == "INVALID_NAME"


@row("submit_new_spec: DUPLICATE_NAME")
def test_a_spec_whose_name_is_taken_is_duplicate_name(strategy_db: Agent) -> None:
    assert strategy_db.code("submit_new_spec", **spec("MACD_CROSSOVER")) == "DUPLICATE_NAME"


@row("submit_new_spec: INVALID_INDICATORS")
def test_a_spec_with_an_unknown_indicator_is_invalid_indicators(strategy_db: Agent) -> None:
    unknown = [{"id": "rsi", "type": "RSY", "params": {"length": "${n}"}}]
    assert strategy_db.code("submit_new_spec", **spec("NEW", indicators=unknown)) == "INVALID_INDICATORS"


@row("submit_new_spec: INVALID_CONDITIONS")
def test_a_spec_with_malformed_conditions_is_invalid_conditions(strategy_db: Agent) -> None:
    malformed = [{"type": "OVER", "indicator": "ema"}]
    for name in ("entry_conditions", "exit_conditions"):
        assert strategy_db.code("submit_new_spec", **spec("NEW", **{name: malformed})) == "INVALID_CONDITIONS"


@row("submit_new_spec: SCHEMA_VALIDATION_ERROR")
def test_a_spec_of_another_shape_is_schema_validation_error(strategy_db: Agent) -> None:
    assert strategy_db.code("submit_new_spec", **spec("NEW", parameters=[{"name": "n"}])) == "SCHEMA_VALIDATION_ERROR"
    assert strategy_db.code("submit_new_spec", **without(spec("NEW"), "parameters")) == "SCHEMA_VALIDATION_ERROR"
    assert strategy_db.code("submit_new_spec", **spec("NEW", description=5)) == "SCHEMA_VALIDATION_ERROR"


@row("submit_new_spec: DATABASE_ERROR")
def test_a_spec_without_the_database_is_database_error(fallen: dict[str, Agent]) -> None:
    assert fallen["strategy-db"].code("submit_new_spec", **spec("NEW")) == "DATABASE_ERROR"
