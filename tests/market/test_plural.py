"""Numbers with their noun."""

from __future__ import annotations

from openbell.market.plural import counted


def test_one_is_singular_and_others_are_plural() -> None:
    assert [counted(count, "bar") for count in (0, 1, 2, 1250)] == ["0 bars", "1 bar", "2 bars", "1,250 bars"]
    assert [counted(count, "try", "tries") for count in (1, 2)] == ["1 try", "2 tries"]
