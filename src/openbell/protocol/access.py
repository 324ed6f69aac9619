"""Access control: checks a tool's scope, toolset and effect against the settings and the principal's scopes."""

from __future__ import annotations

from collections.abc import Mapping

from openbell.desk.settings import Settings
from openbell.market.errors import Refused
from openbell.protocol.session import Principal, Scope
from openbell.protocol.tool import Effect, Tool

Toolsets = frozenset[str] | None
"""The toolsets that a server offers; None for all."""


def offers(tool: Tool, settings: Settings, toolsets: Toolsets) -> bool:
    """Returns True if a server lists the tool."""
    writes = tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}
    return (toolsets is None or tool.toolset in toolsets) and not (settings.read_only and writes)


def pushed_methods(pushes: Mapping[str, Scope], settings: Settings, principal: Principal) -> frozenset[str]:
    """Returns the methods that are pushed to a principal, of those that a server pushes."""
    scopes = principal.scopes if settings.trade else principal.scopes - {Scope.TRADE}
    return frozenset(method for method, scope in pushes.items() if scope in scopes)


def check(tool: Tool, settings: Settings, toolsets: Toolsets, principal: Principal) -> None:
    """Raises `Refused` unless the settings and the principal's scopes allow the call."""
    if toolsets is not None and tool.toolset not in toolsets:
        raise Refused(
            f"{tool.name} is in the toolset {tool.toolset}, and this server offers {', '.join(sorted(toolsets))}"
        )
    if settings.read_only and tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}:
        raise Refused(f"{tool.name} writes, and this desk was started with --read-only")
    if tool.scope is Scope.TRADE and not settings.trade:
        raise Refused(f"{tool.name} is a trading tool: start the server with --trade to allow it")
    require(tool.scope, tool.name, principal)


def require(scope: Scope, what: str, principal: Principal) -> None:
    """Raises `Refused` unless a principal has a scope. For tools that need it with certain arguments only."""
    if scope not in principal.scopes or (principal.anonymous and scope is not Scope.READ):
        raise Refused(f"{what} needs the scope {scope}: authorize again with it, or use a token that has it")
