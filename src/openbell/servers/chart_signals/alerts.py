"""subscribe_alerts and unsubscribe_alerts, as tools and as JSON-RPC methods; alerts arrive as `signals.alert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from openbell.market.timeframes import name_of, parse_timeframe
from openbell.protocol.call import Call, Result, on_bars
from openbell.protocol.result_fields import shaped
from openbell.protocol.session import Scope
from openbell.protocol.tool import Arguments, Effect, Reads, Tool, require_scope
from openbell.servers.chart_signals import shapes
from openbell.servers.chart_signals.signals import SIGNAL_ERRORS
from openbell.signals.crossing_alerts import CONDITIONS, METHOD, CrossingAlert, CrossingRequest, CrossingSubscription

if TYPE_CHECKING:
    from openbell.desk.alerts.connection_subscriptions import Sink


class AlertConditionInput(Arguments):
    """One condition of a subscription."""

    type: Annotated[str, Field(json_schema_extra={"enum": list(CONDITIONS)})]
    direction: Annotated[Literal["up", "down"] | None, Field(description="of macd_cross; both if left out")] = None


class SubscribeAlertsInput(Arguments):
    """Input of subscribe_alerts."""

    symbol: shapes.Symbol
    timeframe: shapes.TimeframeName
    conditions: Annotated[list[AlertConditionInput], Field(min_length=1, max_length=20)]
    throttle_ms: Annotated[int, Field(ge=0, le=86_400_000, description="least time between two alerts")] = 0


class UnsubscribeInput(Arguments):
    """Input of unsubscribe_alerts."""

    subscription_id: Annotated[str, Field(max_length=64)]


async def subscribe_alerts(call: Call, given: SubscribeAlertsInput) -> Result[shapes.SubscriptionResponse]:
    """Watch a symbol; a condition fires at the closed bar at which it becomes true."""
    timeframe = parse_timeframe(given.timeframe, shapes.TIMEFRAMES)
    name = name_of(timeframe, shapes.TIMEFRAMES)

    conditions = tuple((condition.type, condition.direction) for condition in given.conditions)
    asked = CrossingRequest(call.principal, given.symbol, timeframe, name, conditions, given.throttle_ms)
    if _is_stored(call):
        subscription = await call.desk.trading.subscriptions.subscribe(asked)
    else:
        subscription = await call.desk.connection_subscriptions.subscribe(
            asked, _sender(call), once=call.session.stateless
        )
    return Result(shaped(shapes.SubscriptionResponse, subscription), on_bars(subscription.instrument))


def _is_stored(call: Call) -> bool:
    """Returns True if the caller keeps no connection and this desk can store its subscriptions.

    Raises `Refused` if the caller may not store anything.
    """
    stored = call.session.stateless and call.desk.trading.writes
    if stored:
        require_scope(Scope.WRITE, "a subscription over HTTP is stored and", call.session.principal)
    return stored


def _sender(call: Call) -> Sink:
    async def send(subscription: CrossingSubscription, alert: CrossingAlert) -> None:
        params = {**subscription.notification(alert), "_meta": call.desk.truth_of_pushes}
        await call.session.notify(METHOD, params)

    return send


async def unsubscribe_alerts(call: Call, given: UnsubscribeInput) -> Result[shapes.UnsubscribedResponse]:
    """End one of the caller's subscriptions."""
    if _is_stored(call):
        await call.desk.trading.subscriptions.unsubscribe(call.principal, given.subscription_id)
    else:
        call.desk.connection_subscriptions.unsubscribe(call.principal, given.subscription_id)
    return Result({"subscription_id": given.subscription_id, "unsubscribed": True})


TOOLS = (
    Tool(
        "subscribe_alerts",
        f"Notify ({METHOD}) when a condition becomes true at a closed bar. Lasts as long as this connection, over HTTP "
        "until unsubscribe_alerts.",
        SubscribeAlertsInput,
        shapes.SubscriptionResponse,
        subscribe_alerts,
        toolset="signals",
        reads=Reads.BARS,
        effect=Effect.SESSION,
        idempotent=False,
        errors=SIGNAL_ERRORS,
        method=True,
    ),
    Tool(
        "unsubscribe_alerts",
        "End a subscription.",
        UnsubscribeInput,
        shapes.UnsubscribedResponse,
        unsubscribe_alerts,
        toolset="signals",
        reads=Reads.NOTHING,
        effect=Effect.SESSION,
        method=True,
    ),
)
