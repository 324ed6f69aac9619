"""set_alert, list_alerts, cancel_alert, get_notifications, and the three tools of subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

from pydantic import Field

from openbell.charts.choices import one_of
from openbell.market.clock import iso
from openbell.market.errors import (
    InvalidParameter,
    InvalidSymbol,
    NoSuchOrder,
    OrderError,
    Refused,
    StoreError,
    UnknownSymbol,
)
from openbell.market.instruments import parse
from openbell.market.timeframes import SHORT
from openbell.protocol.call import Call
from openbell.protocol.tool import Absent, Arguments, Effect, NoArguments, Tool, without_default
from openbell.servers.chartgen import trading_shapes as shapes
from openbell.servers.chartgen.shapes import DEFAULT_TIMEFRAME, choice, short_name

if TYPE_CHECKING:
    from openbell.trading.inbox import Filter

TYPES = ("price_above", "price_below", "indicator_signal")
LONGEST_WAIT = 50.0


class IndicatorSignal(Arguments):
    """A signal of an indicator."""

    indicator: Annotated[str, Field(max_length=64)]
    signal: Annotated[str, Field(max_length=64)]


class ConditionInput(Arguments):
    """Exactly one thing to wait for."""

    price_above: float | str | None = None
    price_below: float | str | None = None
    indicator_signal: IndicatorSignal | None = None


class AlertInput(Arguments):
    """What set_alert takes."""

    symbol: str
    condition: Annotated[ConditionInput, Field(description="exactly one of these")]
    interval: Annotated[
        Annotated[str, choice(SHORT)] | Absent,
        Field(description="1m by default, 4h for signals", json_schema_extra=without_default),
    ] = None


class CancelInput(Arguments):
    """What cancel_alert takes."""

    alert_id: Annotated[str, Field(max_length=200)]


class NotificationsInput(Arguments):
    """What get_notifications takes."""

    cursor: Annotated[
        int | None, Field(ge=0, le=2**53, description="acknowledge up to here and return what came after; 0: all")
    ] = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    wait_s: Annotated[
        float, Field(ge=0, le=LONGEST_WAIT, description="wait so long for the first one; less than OPENBELL_TIMEOUT")
    ] = 0.0


class SubscribeInput(Arguments):
    """What subscribe_notifications takes."""

    symbols: Annotated[list[str] | None, Field(max_length=500, description="only these")] = None
    alert_types: Annotated[
        list[Annotated[str, choice(TYPES)]] | None, Field(max_length=len(TYPES), description="only these")
    ] = None


async def set_alert(call: Call, given: AlertInput) -> shapes.AlertShape:
    """Register a one-shot alert."""
    from openbell.desk.trading.alarms import Condition
    from openbell.trading.alerts import Type

    wanted = [name for name in TYPES if getattr(given.condition, name) is not None]
    if len(wanted) != 1:
        raise InvalidParameter(f"condition must have exactly one of {', '.join(TYPES)}")
    kind = Type(wanted[0])
    usual = "1m" if kind.of_price else DEFAULT_TIMEFRAME
    interval = short_name(usual if given.interval is None else given.interval, "interval")
    signal = given.condition.indicator_signal
    condition = Condition(
        kind,
        given.condition.price_above if kind is Type.PRICE_ABOVE else given.condition.price_below,
        signal.indicator if signal else None,
        signal.signal if signal else None,
    )
    alert = await call.on_account().alerts.set(call.principal.subject, given.symbol, interval, condition)
    return shapes.alert_shape(alert)


async def list_alerts(call: Call, _given: NoArguments) -> shapes.AlertsResponse:
    """One's active alerts."""
    found = await call.on_account().alerts.listing(call.principal.subject)
    return {"alerts": [shapes.alert_shape(alert) for alert in found]}


async def cancel_alert(call: Call, given: CancelInput) -> shapes.AlertShape:
    """Remove an alert before it fires."""
    if not given.alert_id.isprintable():
        raise NoSuchOrder(f"no alert {given.alert_id[:80]!r}")
    alert = await call.on_account().alerts.cancel(call.principal.subject, given.alert_id)
    call.about(parse(alert.symbol))
    return shapes.alert_shape(alert)


async def get_notifications(call: Call, given: NotificationsInput) -> shapes.NotificationsResponse:
    """Drain the inbox, or read on from a cursor."""
    limit = call.desk.settings.timeout
    # A call that would run into the time-out could not tell what it had taken out.
    wait = min(given.wait_s, max(0.0, limit - 1.0)) if limit else given.wait_s
    inbox, writes = call.inbox(), not call.desk.settings.read_only
    if given.cursor is None and writes:
        found, remaining, left = await inbox.take(given.limit, wait)
        if found:
            call.afterwards.append(left)
    else:
        if given.cursor and writes:
            await inbox.acknowledge(given.cursor)
        found, remaining = await inbox.peek(given.cursor, given.limit, wait)
    return {
        "notifications": [cast("shapes.NotificationShape", each.body) for each in found],
        "cursor": found[-1].cursor if found else given.cursor,
        "remaining": remaining,
    }


async def subscribe_notifications(call: Call, given: SubscribeInput) -> shapes.SubscribedResponse:
    """Have fired alerts pushed as notifications/alert_triggered."""
    from openbell.trading.inbox import Filter

    for name in given.alert_types or []:
        one_of("alert_types", name, TYPES)
    symbols = frozenset(parse(symbol).symbol for symbol in given.symbols or [])
    trading = call.on_account()
    subscription = await trading.inbox.subscribe(
        call.principal.subject, Filter(symbols, frozenset(given.alert_types or []))
    )
    return {"subscribed": True, "subscription": _filter_shape(subscription.filter, subscription.created_at)}


async def unsubscribe_notifications(call: Call, _given: NoArguments) -> shapes.UnsubscribedResponse:
    """End the subscription, and forget what waits to be pushed."""
    return {"unsubscribed": await call.on_account().inbox.unsubscribe(call.principal.subject)}


async def list_subscriptions(call: Call, _given: NoArguments) -> shapes.SubscriptionsResponse:
    """The subscription and its queue."""
    found, queued = await call.on_account().inbox.subscription(call.principal.subject)
    return {
        "subscriptions": [] if found is None else [_filter_shape(found.filter, found.created_at)],
        "queued": queued,
    }


def _filter_shape(wanted: Filter, created_at: float) -> shapes.FilterShape:
    return {
        "symbols": sorted(wanted.symbols),
        "alert_types": sorted(wanted.alert_types),
        "created_at": iso(created_at),
    }


_ANY = (Refused, StoreError)

TOOLS = (
    Tool(
        "set_alert",
        "Register a one-shot alert on a symbol: fires once, on a closed bar after now, into the inbox.",
        AlertInput,
        shapes.AlertShape,
        set_alert,
        effect=Effect.WRITE,
        idempotent=False,
        trade=True,
        errors=(*_ANY, InvalidSymbol, UnknownSymbol),
    ),
    Tool(
        "list_alerts", "Your active alerts.", NoArguments, shapes.AlertsResponse, list_alerts, trade=True, errors=_ANY
    ),
    Tool(
        "cancel_alert",
        "Remove an alert before it fires.",
        CancelInput,
        shapes.AlertShape,
        cancel_alert,
        effect=Effect.DESTRUCTIVE,
        trade=True,
        errors=(*_ANY, OrderError),
    ),
    Tool(
        "get_notifications",
        "Drain the inbox of triggered alerts. With cursor nothing is lost if an answer is: it acknowledges up to there.",
        NotificationsInput,
        shapes.NotificationsResponse,
        get_notifications,
        effect=Effect.SESSION,
        idempotent=False,
        trade=True,
        errors=_ANY,
    ),
    Tool(
        "subscribe_notifications",
        "Push triggered alerts (notifications/alert_triggered) that pass these filters, instead of those set before.",
        SubscribeInput,
        shapes.SubscribedResponse,
        subscribe_notifications,
        effect=Effect.WRITE,
        trade=True,
        errors=(*_ANY, InvalidSymbol),
    ),
    Tool(
        "unsubscribe_notifications",
        "End the subscription.",
        NoArguments,
        shapes.UnsubscribedResponse,
        unsubscribe_notifications,
        effect=Effect.DESTRUCTIVE,
        trade=True,
        errors=_ANY,
    ),
    Tool(
        "list_subscriptions",
        "The subscription's filters, and how many notifications wait to be pushed.",
        NoArguments,
        shapes.SubscriptionsResponse,
        list_subscriptions,
        trade=True,
        errors=_ANY,
    ),
)
