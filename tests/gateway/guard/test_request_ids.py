"""X-Request-ID: taken if it is harmless, made otherwise, and repeated in the response."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from openbell.gateway.guard.responses import Responses
from tests.gateway.guard.serving import Answer, Echo, Served, settings_of


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    app = Echo(headers=[(b"x-request-id", b"from-the-application")])
    with Served(lambda _port: Responses(app), settings_of(tmp_path_factory.mktemp("home"))) as made:
        yield made


def id_of(answer: Answer) -> str:
    """The id, which must be the same for the application and in the response."""
    assert answer.status == 200
    assert answer["x-request-id"] == answer.json["id"]
    return str(answer.json["id"])


@pytest.mark.parametrize("given", ["a", "req-1.2_X", "A" * 64])
def test_a_harmless_id_is_taken(served: Served, given: str) -> None:
    assert id_of(served.get("/mcp", f"X-Request-ID: {given}")) == given


def test_without_one_an_id_is_made(served: Served) -> None:
    ids = {id_of(served.get()) for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", each) for each in ids)


@pytest.mark.parametrize("given", ["", "A" * 65, "a" * 10_000, "a b", 'a"b', "a;b", "<script>", "\xe9", "a,b", "../x"])
def test_attack_hostile_id_is_replaced(served: Served, given: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", id_of(served.get("/mcp", f"X-Request-ID: {given}")))


def test_attack_two_ids_are_replaced(served: Served) -> None:
    assert id_of(served.get("/mcp", "X-Request-ID: one", "X-Request-ID: two")) not in {"one", "two"}


def test_attack_line_breaks_in_an_id(served: Served) -> None:
    """A bare CR is refused by h11; CR LF begins another header, which is not repeated in the response."""
    assert served.get("/mcp", "X-Request-ID: a\rSet-Cookie: x=1").status == 400
    answer = served.get("/mcp", "X-Request-ID: a\r\nSet-Cookie: x=1")
    assert id_of(answer) == "a"
    assert answer["set-cookie"] is None
    folded = served.get("/mcp", "X-Request-ID: a\r\n Set-Cookie: x=1")
    assert folded.status == 400 or "Set-Cookie" not in str(folded.headers)
