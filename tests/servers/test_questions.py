"""Every line of docs/questions.md: one call answers the question, in a small answer, with the fields that the line names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.servers.desks import Bench, awaited, bench

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"
BOUGHT, ASKED = "2026-01-09T18:00:00Z", "2026-01-09T19:30:00Z"
TOKENS = 1500
CATALOGUE_TOKENS = 6000
_CALL = re.compile(r"`(\S+) (\S+) (\{.*\})`")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class Question(NamedTuple):
    """One line of the page."""

    text: str
    server: str
    tool: str
    arguments: dict[str, Any]
    fields: list[str]
    """Empty for a picture."""


def questions() -> list[Question]:
    found: list[Question] = []
    for line in PAGE.read_text().splitlines():
        if not line.startswith("| ") or line.startswith("| question"):
            continue
        text, call, fields = (each.strip() for each in line.strip("|").split(" | "))
        matched = _CALL.fullmatch(call)
        assert matched, line
        server, tool, arguments = matched.groups()
        found.append(Question(text, server, tool, json.loads(arguments), re.findall(r"`([^`]+)`", fields)))
    return found


QUESTIONS = questions()


def value_at(payload: Any, path: str) -> Any:
    """The value at a path such as `items[0].price`. Raises KeyError or IndexError if there is none."""
    for name, index in _STEP.findall(path):
        payload = payload[int(index)] if index else payload[name]
    return payload


async def prepared(desk: Bench) -> None:
    """An account with a position, its exits, a working order, an alert and a decision."""
    price = (await desk.ask("market-data", "get_current_price", symbol="BTC/USD"))["price"]
    exits = {"take_profit": round(price * 1.2, 2), "stop_loss": round(price * 0.8, 2)}
    await desk.chartgen("place_order", symbol="BTC/USD", side="buy", type="market", quantity="0.05", **exits)
    await desk.chartgen(
        "place_order", symbol="BTC/USD", side="buy", type="limit", quantity="0.01", price=round(price * 0.96, 2)
    )
    await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": round(price * 2, 2)})
    decision: dict[str, Any] = {
        "symbol": "BTC/USD",
        "action": "BUY",
        "confidence": 0.7,
        "reasoning": "the average was reclaimed",
    }
    await desk.ask("decisions", "save_decision", **decision)


async def missing(desk: Bench, question: Question) -> list[str]:
    """What is wrong with the answer to a question."""
    reply = await desk.reply(question.server, question.tool, question.arguments)
    if reply.is_error:
        return [f"{question.text} {reply.payload}"]
    if not question.fields:
        return [] if reply.images else [f"{question.text} no picture"]
    payload = reply.payload["data"] if "_metadata" in reply.payload else reply.payload
    wrong: list[str] = []
    for field in question.fields:
        path = field.removesuffix("?")
        try:
            value = value_at(payload, path)
        except (KeyError, IndexError, TypeError):
            wrong += [] if field.endswith("?") else [f"{question.text} no {path}"]
        else:
            if value is None and not field.endswith("?"):
                wrong.append(f"{question.text} {path} is null")
    size = len(json.dumps(payload, separators=(",", ":")).encode()) // 4
    most = CATALOGUE_TOKENS if question.tool == "list_indicators" else TOKENS
    return [*wrong, *([f"{question.text} {size} tokens"] if size > most else [])]


def test_there_are_fifty_questions_and_no_two_are_equal() -> None:
    assert len({each.text for each in QUESTIONS}) == len(QUESTIONS) >= 50


def test_a_missing_field_is_found() -> None:
    assert value_at({"a": [{"b": 1}]}, "a[0].b") == 1
    with pytest.raises(KeyError):
        value_at({"a": [{"b": 1}]}, "a[0].c")


@pytest.mark.usefixtures("quick_search")
@awaited
async def test_every_question_is_answered_by_its_call(tmp_path: Path) -> None:
    async with bench(tmp_path, BOUGHT) as desk:
        await prepared(desk)
    async with bench(tmp_path, ASKED) as desk:
        wrong: list[str] = []
        for question in QUESTIONS:
            wrong += await missing(desk, question)
        assert not wrong, "\n".join(wrong)
