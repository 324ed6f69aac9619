"""A tool as a value: name, scope, effect, schemas, handler; and who may call it under which settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any, cast, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator
from pydantic.json_schema import SkipJsonSchema

from openbell.desk.settings import Settings
from openbell.market.errors import OpenbellError, Refused
from openbell.protocol.call import Call, Result
from openbell.protocol.numbers import Rounding, rounding
from openbell.protocol.session import Principal, Scope

Absent = SkipJsonSchema[None]
"""Added to an argument's type: the argument is optional, but null is not in its schema, as in the contracts."""
Toolsets = frozenset[str] | None
"""The toolsets that a server offers; None for all."""


class Arguments(BaseModel):
    """Base class of every tool's input: refuses unknown arguments and converts no types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _read_whole_numbers(cls, given: Any) -> Any:
        """Converts 5.0 to 5 in integer fields: JSON Schema calls both an integer."""
        fields = cls._whole_fields()
        if not fields or not isinstance(given, dict):
            return given
        return {name: whole(value) if name in fields else value for name, value in given.items()}

    @classmethod
    @cache
    def _whole_fields(cls) -> frozenset[str]:
        return frozenset(
            name
            for name, field in cls.model_fields.items()
            if int in (field.annotation, *get_args(field.annotation)) and float not in get_args(field.annotation)
        )


def whole(value: Any) -> Any:
    """Returns a float without a fraction as an int, any other value unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def without_default(schema: dict[str, Any]) -> None:
    """For a field's `json_schema_extra`: removes the default from the schema."""
    schema.pop("default", None)


class NoArguments(Arguments):
    """The input of a tool without arguments."""


class Effect(Enum):
    """What a call can change."""

    READ = "read"
    SESSION = "session"
    """Changes only the state of this connection, such as a subscription; allowed in read-only mode."""
    BY_ARGUMENT = "by argument"
    """Adds stored data only if an argument asks for it, which the handler refuses in read-only mode."""
    WRITE = "write"
    """Adds stored data."""
    DESTRUCTIVE = "destructive"
    """Replaces or removes stored data, or moves money."""


class Reads(Enum):
    """The stored data that a tool reads."""

    NOTHING = "nothing"
    BARS = "bars"
    RECORDS = "records"
    """The caller's records: a result is never returned to another principal."""
    ACCOUNT = "account"
    """The records of the caller's account."""

    @property
    def personal(self) -> bool:
        """Returns True if the result depends on the principal."""
        return self is Reads.RECORDS or self is Reads.ACCOUNT


@dataclass(frozen=True)
class Tool:
    """One tool: its name, its input and output types, its effects and permissions, and its handler."""

    name: str
    description: str
    arguments: type[Arguments]
    returns: type[Any] | None
    """A TypedDict, which mypy checks in the handler and the tests check against the schema. None for `Media`."""
    handler: Callable[[Call, Any], Awaitable[Result[Any]]]
    toolset: str
    """The group of tools that it belongs to; a server can offer some groups only."""
    reads: Reads
    scope: Scope = Scope.READ
    """The scope that its caller needs; `trade` also needs --trade."""
    effect: Effect = Effect.READ
    open_world: bool = False
    """True if it contacts systems other than the desk and its feed, or returns texts that others have written."""
    idempotent: bool = True
    cache: str = ""
    """The setting with the number of seconds for which results are cached; empty if they are not cached."""
    changes: tuple[str, ...] = ()
    """The tools whose cached results a call of this one invalidates."""
    errors: tuple[type[OpenbellError], ...] = ()
    """The errors that it raises besides those for invalid arguments."""
    late: Callable[[Call, Any], str | None] | None = None
    """(call, arguments): what a call that has exceeded its timeout still waits for; None if nothing is known of it."""
    note_of: Callable[[Mapping[str, Any]], str] | None = None
    """(truth header): the second text block of a result, for contracts whose results may have no further field."""
    method: bool = False
    """True if the contract also offers it as a JSON-RPC method."""

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return schema_of(self.arguments)

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the result."""
        return schema_of(self.returns) if self.returns else None

    @cached_property
    def rounding(self) -> Rounding | None:
        """Rounds the computed numbers of a result; None if it has none."""
        return rounding(self.returns)

    @property
    def annotations(self) -> dict[str, bool]:
        """The hints of the MCP protocol."""
        return {
            "readOnlyHint": self.effect is Effect.READ,
            "destructiveHint": self.effect is Effect.DESTRUCTIVE,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


def schema_of(kind: type[Any]) -> dict[str, Any]:
    """Returns the schema of a model or TypedDict as one self-contained object."""
    schema = TypeAdapter(kind).json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    return cast("dict[str, Any]", _plain(schema, definitions))


def _plain(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_plain(each, definitions) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _plain({**target, **rest}, definitions)
    return {
        key: _properties(value, definitions) if key == "properties" else _plain(value, definitions)
        for key, value in node.items()
        # Titles repeat the names, and the docstrings of types are for developers, not for agents.
        if key != "title" and not (key == "description" and "properties" in node)
    }


def _properties(table: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value, definitions) for name, value in table.items()}


def offers(tool: Tool, settings: Settings, toolsets: Toolsets) -> bool:
    """Returns True if a server lists the tool."""
    writes = tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}
    return (toolsets is None or tool.toolset in toolsets) and not (settings.read_only and writes)


def pushed_methods(pushes: Mapping[str, Scope], settings: Settings, principal: Principal) -> frozenset[str]:
    """Returns the methods that are pushed to a principal, of those that a server pushes."""
    scopes = principal.scopes if settings.trade else principal.scopes - {Scope.TRADE}
    return frozenset(method for method, scope in pushes.items() if scope in scopes)


def require_allowed(tool: Tool, settings: Settings, toolsets: Toolsets, principal: Principal) -> None:
    """Raises `Refused` unless the settings and the principal's scopes allow the call."""
    if toolsets is not None and tool.toolset not in toolsets:
        raise Refused(
            f"{tool.name} is in the toolset {tool.toolset}, and this server offers {', '.join(sorted(toolsets))}"
        )
    if settings.read_only and tool.effect in {Effect.WRITE, Effect.DESTRUCTIVE}:
        raise Refused(f"{tool.name} writes, and this desk was started with --read-only")
    if tool.scope is Scope.TRADE and not settings.trade:
        raise Refused(f"{tool.name} is a trading tool: start the server with --trade to allow it")
    require_scope(tool.scope, tool.name, principal)


def require_scope(scope: Scope, what: str, principal: Principal) -> None:
    """Raises `Refused` unless a principal has a scope. For tools that need it with certain arguments only."""
    if scope not in principal.scopes or (principal.anonymous and scope is not Scope.READ):
        raise Refused(f"{what} needs the scope {scope}: authorize again with it, or use a token that has it")
