"""The list of attacks is complete and long enough."""

from __future__ import annotations

from pathlib import Path

from tests.gateway import attacks


def test_the_page_lists_every_attack() -> None:
    assert attacks.PAGE.read_text(encoding="utf-8") == attacks.page(), "write it anew with: make docs"


def test_at_least_60_attacks_in_every_part_of_the_gateway() -> None:
    found = list(attacks.attacks())
    assert len({(module, name) for module, name, _ in found}) == len(found) >= 60
    parts = {str(Path(module).parent) for module, _, _ in found}
    assert parts >= {f"tests/gateway/{part}" for part in ("guard", "streamable", "webhooks")} | {"tests/gateway"}
