"""A tool is a value. Its schemas, annotations, documentation and tests follow from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.json_schema import SkipJsonSchema

from openbell.market.errors import OpenbellError
from openbell.protocol.call import Call, Result
from openbell.protocol.schema import schema_of
from openbell.protocol.session import Scope


class Arguments(BaseModel):
    """Base of every tool's input: nothing that the tool does not name, no silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _read_whole_numbers(cls, given: Any) -> Any:
        """5.0 as 5 wherever a whole number is wanted: JSON Schema calls both an integer."""
        if not isinstance(given, dict):
            return given
        return {name: whole(value) if name in cls._whole_fields() else value for name, value in given.items()}

    @classmethod
    @cache
    def _whole_fields(cls) -> frozenset[str]:
        return frozenset(
            name
            for name, field in cls.model_fields.items()
            if int in (field.annotation, *get_args(field.annotation)) and float not in get_args(field.annotation)
        )


def whole(value: Any) -> Any:
    """A float without a fraction as an int; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Absent = SkipJsonSchema[None]
"""Beside an argument's type: it may be left out, and the schema, like the contract's, knows no null."""


def without_default(schema: dict[str, Any]) -> None:
    """For a field's `json_schema_extra`: what is absent has no default."""
    schema.pop("default", None)


class NoArguments(Arguments):
    """The input of a tool that takes none."""


class Effect(Enum):
    """What a call may change."""

    READ = "read"
    SESSION = "session"
    """Only the state of this connection, such as a subscription; allowed in read-only mode."""
    WRITE = "write"
    """Adds to what is stored."""
    DESTRUCTIVE = "destructive"
    """Replaces, removes, or moves money."""


class Reads(Enum):
    """What a tool's answers are made of."""

    NOTHING = "nothing"
    """Of what is stored."""
    BARS = "bars"
    RECORDS = "records"
    """The caller's own: an answer to one principal is never given to another."""
    ACCOUNT = "account"
    """The records of the caller's account."""

    @property
    def personal(self) -> bool:
        """Whether the answer depends on who asks."""
        return self in {Reads.RECORDS, Reads.ACCOUNT}


@dataclass(frozen=True)
class Tool:
    """One tool: what it is called, what goes in and out, what it may do, and who does it."""

    name: str
    description: str
    arguments: type[Arguments]
    returns: type[Any] | None
    """A TypedDict: checked by mypy where the handler builds it, and by the tests against the schema. None for `Media`."""
    handler: Callable[[Call, Any], Awaitable[Result[Any]]]
    toolset: str
    """Which part of the desk it belongs to: a server may offer only some."""
    reads: Reads
    scope: Scope = Scope.READ
    """What its caller must be allowed; `trade` needs --trade besides."""
    effect: Effect = Effect.READ
    open_world: bool = False
    """Whether it reaches out to systems beyond this desk and its feed."""
    idempotent: bool = True
    cache: str = ""
    """The setting that says for how many seconds an answer may be given again; none: not at all."""
    changes: tuple[str, ...] = ()
    """The tools whose kept answers are no longer true after this one."""
    errors: tuple[type[OpenbellError], ...] = ()
    """What it raises beyond a bad argument."""
    method: bool = False
    """Whether the contract also offers it as a JSON-RPC method of its own."""

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return schema_of(self.arguments)

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the result."""
        return schema_of(self.returns) if self.returns else None

    @property
    def annotations(self) -> dict[str, bool]:
        """The protocol's hints."""
        return {
            "readOnlyHint": self.effect is Effect.READ,
            "destructiveHint": self.effect is Effect.DESTRUCTIVE,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
