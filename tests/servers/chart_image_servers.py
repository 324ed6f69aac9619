"""chart-image as a process on stdio, and what its tests ask of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.client import OPENBELL, Client

AS_OF = "2026-01-07T15:30:20Z"
SMALL = {"width": 400, "height": 300}
BITCOIN = {"symbol": "BINANCE:BTCUSDT", "interval": "1h", "range": "7D", **SMALL}
NOWHERE = "http://127.0.0.1:9"
"""An address at which nothing listens."""


class ChartImage(Client):
    """`openbell mcp chart-image`."""

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Returns the object of a tool that succeeds; its text is the same object."""
        answer = self.call(tool, arguments)["result"]
        assert answer["isError"] is False, answer
        return _payload(answer)

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Returns the object of a tool that fails, in the contract's form."""
        answer = self.call(tool, arguments)["result"]
        assert answer["isError"] is True, answer
        found = _payload(answer)
        assert found["success"] is False
        assert found["error"]
        assert set(found) <= {"success", "error", "retryAfter", "details"}
        return found

    def picture(self, **arguments: Any) -> bytes:
        """Returns a picture that generate_chart_image draws."""
        return base64.b64decode(self.ask("generate_chart_image", **arguments)["imageData"])


def _payload(answer: dict[str, Any]) -> dict[str, Any]:
    (text,) = [each["text"] for each in answer["content"] if each["type"] == "text"]
    found: dict[str, Any] = json.loads(text)
    assert answer.get("structuredContent") == (None if answer["isError"] else found)
    return found


@contextmanager
def chart_image(home: Path, *flags: str, key: str = "", **settings: str) -> Iterator[ChartImage]:
    """Starts the server in a home. Its documentation is the package's unless a setting says otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CHART_IMG_API_KEY", raising=False)
        if key:
            patch.setenv("CHART_IMG_API_KEY", key)
        given = {"FEED": "sim", "CHART_IMG_DOCS_URL": NOWHERE, **settings}
        made = ChartImage(home, command=[*OPENBELL, "mcp", "chart-image", *flags], **given)
    with made:
        made.initialize()
        yield made


def opened(data: bytes) -> Image.Image:
    """Returns a picture. Fails if it is not a whole one."""
    found = Image.open(BytesIO(data))
    found.load()
    return found
