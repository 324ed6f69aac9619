"""Arguments that are stored: any JSON value, and a check that databases and the ledger can keep it."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import Field

from openbell.market.errors import InvalidParameter

LONGEST_VALUE = 262_144
"""Most bytes of a value as JSON."""
_ZERO = re.compile(r"(?<!\\)(\\\\)*\\u0000")
"""The character 0, escaped in JSON; an even number of backslashes before `u0000` is not such an escape."""
_FLAT: list[Any] = [{"type": each} for each in ("string", "number", "boolean", "null")]
_FLAT.append({"type": "object", "properties": {}})
_NESTED = {"type": "array", "items": {"anyOf": _FLAT}}
Anything = Annotated[Any, Field(json_schema_extra={"anyOf": [*_FLAT, _NESTED]})]
"""Any JSON value, without what some clients refuse: a list of types, an array without items, a recursive schema."""


def require_storable(text: str, name: str, value: Any) -> None:
    """Raises `InvalidParameter` for a text, or a value of an argument, that cannot be stored or is too long."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        size = len(written.encode())
        text.encode()
    except UnicodeEncodeError:
        raise InvalidParameter("the text contains half a surrogate pair") from None
    except ValueError:
        raise InvalidParameter(f"{name} contains NaN or an infinity, which JSON does not have") from None
    except RecursionError:
        raise InvalidParameter(f"{name} is nested too deeply") from None
    if size > LONGEST_VALUE:
        raise InvalidParameter(f"{name} may take at most {LONGEST_VALUE} bytes as JSON")
    if "\x00" in text or ("u0000" in written and _ZERO.search(written)):
        raise InvalidParameter("the text contains the character 0")
