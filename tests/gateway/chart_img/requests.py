"""Requests to the chart API, and checks of its responses."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

from PIL import Image

from tests.gateway.guard.serving import Answer
from tests.gateway.streamable.gateways import Client

AS_OF = "2026-01-07T15:30:20Z"
CHART = "/v2/tradingview/advanced-chart"
STORAGE = f"{CHART}/storage"
LIST = "/v3/tradingview/exchange/list"
SMALL: dict[str, Any] = {"symbol": "BINANCE:BTCUSDT", "interval": "1h", "width": 400, "height": 300}


def draw(gateway: Client, body: object, path: str = CHART, who: str = "writer", **headers: str | None) -> Answer:
    """Returns the answer to a request with the key as the vendor's clients send it; bytes are sent as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return gateway.post(data, None, path, x_api_key=gateway.tokens[who], Accept=None, **headers)


def ask(gateway: Client, path: str, who: str = "writer") -> Answer:
    """Returns the answer to a GET request with a key."""
    return gateway.request("GET", path, None, x_api_key=gateway.tokens[who])


def shown(answer: Answer) -> Image.Image:
    """Returns the picture of a response. Fails if it is none."""
    assert answer.status == 200, answer.body
    found = Image.open(BytesIO(answer.body))
    found.load()
    assert answer["content-type"] == f"image/{(found.format or '').lower()}"
    return found


def fault(answer: Answer, status: int) -> Any:
    """Returns the message of an error, in the vendor's form."""
    assert (answer.status, answer["content-type"]) == (status, "application/json"), (answer.status, answer.body)

    def no_number(name: str) -> None:
        raise ValueError(name)

    body = json.loads(answer.body, parse_constant=no_number)
    assert set(body) == {"message"}
    assert body["message"]
    return body["message"]
