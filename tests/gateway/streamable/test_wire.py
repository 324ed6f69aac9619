"""The response of a tool is the same bytes whether its payload is written once or twice."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_core import to_json

from openbell.gateway.streamable import wire

PAYLOAD = {"text": 'a "quoted" é \x00', "number": 1.5, "missing": float("nan"), "nested": [{"a": None}, []]}


def result(payload: Any, *, is_modern: bool) -> dict[str, Any]:
    text = to_json(payload, inf_nan_mode="null").decode()
    content = [{"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "text", "text": text}]
    found = {"content": content, "isError": False, "_meta": {"x": 1}, "structuredContent": payload}
    return {**found, "resultType": "complete"} if is_modern else found


@pytest.mark.parametrize("is_modern", [False, True])
@pytest.mark.parametrize("payload", [PAYLOAD, {}])
def test_a_payload_is_written_once(payload: Any, is_modern: bool) -> None:
    found = result(payload, is_modern=is_modern)
    for number in (1, "one"):
        assert wire.tool_response(number, found) == wire.response(number, found)


def test_a_result_without_a_payload_is_written_as_it_is() -> None:
    found = {"content": [{"type": "text", "text": "broken"}], "isError": True, "_meta": {}, "resultType": "complete"}
    assert wire.tool_response(1, found) == wire.response(1, found)
