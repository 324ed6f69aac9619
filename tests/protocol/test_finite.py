"""Nothing that leaves holds a number that JSON does not have, whatever a handler returns or sends."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.market.errors import NotFinite, StaleData
from openbell.protocol.call import Call, Result
from openbell.protocol.dialects import EnvelopeDialect, JsonRpcDialect, Media, TextDialect
from openbell.protocol.json_text import finite_or_null, require_finite
from openbell.protocol.server import _notifier
from openbell.protocol.service import Runner, Service
from openbell.protocol.tool import NoArguments, Reads, Tool
from tests.sessions import session

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["NaN", "Infinity"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


@given(anything)
def test_exactly_what_json_cannot_say_is_refused(value: Any) -> None:
    if is_json(value):
        require_finite(value, "tool")
    else:
        with pytest.raises(NotFinite):
            require_finite(value, "tool")


@given(anything)
def test_null_stands_for_it_and_nothing_else_changes(value: Any) -> None:
    found = finite_or_null(value)
    assert is_json(found)
    if is_json(value):
        assert found == value


def test_the_error_names_the_field() -> None:
    with pytest.raises(NotFinite, match=r"tool: a\[1\]\.b\[0\] is not a finite number"):
        require_finite({"x": 1.5, "a": [{"b": [1.0]}, {"b": (math.inf, 2.0)}]}, "tool")


@pytest.mark.parametrize("dialect", [EnvelopeDialect({}), JsonRpcDialect({}), TextDialect()])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_results_media_and_error_details_alike(tmp_path: Path, dialect: Any, number: float) -> None:
    async def result(_call: Call, _given: NoArguments) -> Any:
        return Result({"price": number})

    async def media(_call: Call, _given: NoArguments) -> Any:
        return Result(Media((), {"price": number}))

    async def error(_call: Call, _given: NoArguments) -> Any:
        raise StaleData("old", last_price=number)

    tools = tuple(
        Tool(each.__name__, "", NoArguments, None, each, "test", Reads.NOTHING) for each in (result, media, error)
    )
    desk = Desk(load({"OPENBELL_HOME": str(tmp_path)}))
    runner = Runner(Service("test", "Test", "", tools, dialect), desk)
    for tool in tools:
        reply = asyncio.run(runner.run(tool.name, {}, session()))
        assert reply.is_error
        assert is_json(reply.payload)


def test_a_notification_has_null_there() -> None:
    sent: list[Any] = []

    class Session:
        async def send_notification(self, notification: Any) -> None:
            sent.append(notification.model_dump())

    class Context:
        session = Session()

    async def main() -> None:
        await _notifier(cast("Any", Context()))("signals.alert", {"snapshot": {"rsi": math.nan, "price": 1.5}})

    asyncio.run(main())
    assert sent == [{"method": "signals.alert", "params": {"snapshot": {"rsi": None, "price": 1.5}}}]
