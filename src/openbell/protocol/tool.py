"""The tool, a value from which its schemas, annotations, documentation and tests are derived."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.json_schema import SkipJsonSchema

from openbell.market.errors import OpenbellError
from openbell.protocol.call import Call, Result
from openbell.protocol.numbers import Rounding, rounding
from openbell.protocol.schema import schema_of
from openbell.protocol.session import Scope


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


Absent = SkipJsonSchema[None]
"""Added to an argument's type: the argument is optional, but null is not in its schema, as in the contracts."""


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
