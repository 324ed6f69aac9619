"""get_recent_decisions and save_decision."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from openbell.market.clock import iso
from openbell.market.errors import CallTimeout, InvalidSymbol, Refused, StoreError
from openbell.market.nearest import did_you_mean
from openbell.protocol.call import Call, Result
from openbell.protocol.numbers import Exact
from openbell.protocol.pages import Pagination, pagination
from openbell.protocol.storable import Anything, require_storable
from openbell.protocol.tool import Absent, Arguments, Effect, Reads, Tool, without_default
from openbell.trading.errors import InvalidAction, InvalidConfidence, ReasoningTooLong

ACTIONS = ("BUY", "SELL", "HOLD")
Finite = Annotated[float, Field(allow_inf_nan=False)]
Action = Annotated[str, Field(json_schema_extra={"enum": list(ACTIONS)})]


class Decision(TypedDict):
    """One decision."""

    decision_id: str
    symbol: str
    action: str
    confidence: Exact
    opportunity_score: NotRequired[Exact]
    reasoning: str
    created_at: str


class DecisionPage(TypedDict):
    """Decisions, newest first."""

    items: list[Decision]
    pagination: Pagination


class Saved(TypedDict):
    """The id of a saved decision."""

    decision_id: str
    saved: bool


class RecentInput(Arguments):
    """Input of get_recent_decisions."""

    symbol: Annotated[str | Absent, Field(json_schema_extra=without_default)] = None
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    offset: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    action: Annotated[Action | Absent, Field(json_schema_extra=without_default)] = None
    force_refresh: Annotated[bool, Field(description="bypass the cache")] = False


class SaveInput(Arguments):
    """Input of save_decision."""

    symbol: str
    action: Action
    confidence: Annotated[float, Field(description="0 to 1")]
    opportunity_score: Annotated[Finite | Absent, Field(json_schema_extra=without_default)] = None
    reasoning: Annotated[str, Field(description="at most 16,384 characters")]
    tool_calls: Annotated[
        list[Anything] | Absent, Field(description="what it rests on", json_schema_extra=without_default)
    ] = None


async def get_recent_decisions(call: Call, given: RecentInput) -> Result[DecisionPage]:
    """Return a page of the caller's decisions."""
    action = None if given.action is None else _action(given.action)
    rows, total = await call.desk.trading.decisions.recent(
        call.principal, given.limit, given.offset, given.symbol, action
    )
    return Result(
        {
            "items": [_shown(row) for row in rows],
            "pagination": pagination(given.offset, given.limit, total),
        }
    )


def _shown(row: Any) -> Decision:
    shown: Decision = {
        "decision_id": row["id"],
        "symbol": row["symbol"],
        "action": row["action"],
        "confidence": row["confidence"],
        "reasoning": row["reasoning"],
        "created_at": iso(row["created_at"]),
    }
    if row["opportunity_score"] is not None:
        shown["opportunity_score"] = row["opportunity_score"]
    return shown


async def save_decision(call: Call, given: SaveInput) -> Result[Saved]:
    """Save a decision and its hash in the ledger."""
    action = _action(given.action)
    if not 0 <= given.confidence <= 1:
        raise InvalidConfidence("confidence must be between 0 and 1")
    require_storable(given.reasoning, "tool_calls", given.tool_calls)
    decision_id = await call.desk.trading.decisions.save(
        call.principal,
        given.symbol,
        action,
        given.confidence,
        given.opportunity_score,
        given.reasoning,
        given.tool_calls,
    )
    return Result({"decision_id": decision_id, "saved": True})


def _action(given: str) -> str:
    """Returns the contract's name of an action in any case. Raises `InvalidAction` if there is none."""
    action = given.upper()
    if action not in ACTIONS:
        raise InvalidAction(f"action must be {', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}{did_you_mean(action, ACTIONS)}")
    return action


_ANY = (InvalidSymbol, InvalidAction, StoreError, CallTimeout, Refused)

TOOLS = (
    Tool(
        name="get_recent_decisions",
        description="Your decisions, newest first, of one symbol or action if given.",
        arguments=RecentInput,
        returns=DecisionPage,
        handler=get_recent_decisions,
        toolset="decisions",
        reads=Reads.RECORDS,
        cache="cache_decisions",
        errors=_ANY,
    ),
    Tool(
        name="save_decision",
        description="Keep a decision and its reasoning for good.",
        arguments=SaveInput,
        returns=Saved,
        handler=save_decision,
        toolset="decisions",
        reads=Reads.RECORDS,
        effect=Effect.WRITE,
        idempotent=False,
        changes=("get_recent_decisions",),
        errors=(*_ANY, InvalidConfidence, ReasoningTooLong),
    ),
)
