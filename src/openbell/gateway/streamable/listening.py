"""The method subscriptions/listen of revision 2026-07-28: its response is a stream of what GET sends in earlier ones."""

from __future__ import annotations

from typing import Any, cast

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, event_from_wire, event_matches
from mcp_types import SubscriptionFilter, SubscriptionsListenRequestParams, SubscriptionsListenResult

from openbell.gateway.streamable.channels import Push
from openbell.gateway.streamable.exchange import HttpExchange
from openbell.gateway.streamable.pushes import Pushed, PushStreams
from openbell.protocol.sdk import ServerRequestContext

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Listening:
    """Serves one stream for each call."""

    def __init__(self, pushes: PushStreams, pushed: Pushed) -> None:
        """`pushed` returns the methods that the server pushes to a principal."""
        self._pushes = pushes
        self._pushed = pushed

    async def __call__(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Acknowledge, then send pushes until the client disconnects or the gateway closes."""
        exchange = cast("HttpExchange", context.request)
        meta = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        granted = _granted(params.notifications)
        shown = granted.model_dump(by_alias=True, mode="json", exclude_none=True)
        principal = exchange.session.principal
        async with self._pushes.opened(principal, self._pushed(principal), None, permit=exchange.permit) as pushes:
            await exchange.notify(ACKNOWLEDGED, {"notifications": shown, "_meta": meta})
            async for push in pushes:
                if push is not None and _passes(granted, push):
                    await exchange.notify(
                        push.method, {**push.params, "_meta": {**push.params.get("_meta", {}), **meta}}
                    )
        return SubscriptionsListenResult(_meta=meta)


def _granted(wanted: SubscriptionFilter) -> SubscriptionFilter:
    """Returns the kinds of events that were asked for. Those that never happen here are granted and never sent."""
    return SubscriptionFilter(
        tools_list_changed=wanted.tools_list_changed or None,
        prompts_list_changed=wanted.prompts_list_changed or None,
        resources_list_changed=wanted.resources_list_changed or None,
        resource_subscriptions=list(wanted.resource_subscriptions) if wanted.resource_subscriptions else None,
    )


def _passes(granted: SubscriptionFilter, push: Push) -> bool:
    """Returns False for a change of tools, prompts or resources that was not asked for. Other pushes have no filter."""
    event = event_from_wire(push.method, push.params)
    return event is None or event_matches(granted, frozenset(granted.resource_subscriptions or ()), event)
