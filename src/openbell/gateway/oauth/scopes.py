"""What each scope allows, in one sentence for the consent page."""

from __future__ import annotations

from collections.abc import Iterable

from openbell.protocol.session import Scope

SENTENCES = {
    Scope.READ: "Read prices, charts, signals and backtests, and your orders, positions, alerts and decisions.",
    Scope.WRITE: "Store decisions, strategy specs, chart images and subscriptions in your name. No orders.",
    Scope.TRADE: "Place and cancel orders and set alerts in your name, and all that write allows.",
    Scope.ADMIN: "Administer this desk.",
}
DEFAULT = frozenset({Scope.READ})
"""The scopes of a client that asks for none."""


def parse_scopes(names: Iterable[str]) -> frozenset[Scope] | None:
    """Returns the scopes of names; None if one of them is not a scope."""
    try:
        return frozenset(Scope(name) for name in names)
    except ValueError:
        return None


def in_order(scopes: Iterable[str]) -> list[Scope]:
    """Returns scopes in the order in which they are shown; unknown ones are left out."""
    wanted = set(scopes)
    return [scope for scope in Scope if scope in wanted]


def scope_text(scopes: Iterable[str]) -> str:
    """Returns scopes as OAuth writes them: separated by spaces."""
    return " ".join(in_order(scopes))
