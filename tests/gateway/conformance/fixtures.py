"""Contents, tools, resources and prompts with fixed results, under the names that the suite expects."""

from __future__ import annotations

import asyncio
import io
import struct
import wave
import zlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from openbell.gateway.streamable.endpoint import session_of
from openbell.protocol.sdk import MCPError, ServerRequestContext, types

Context = ServerRequestContext[Any, Any]
Handler = Callable[[Context, types.CallToolRequestParams], Awaitable[dict[str, Any]]]

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
INVALID_PARAMS = -32602
MISSING_CAPABILITY = -32021
SIMPLE_TEXT = "This is a simple text response for testing."
ERROR_TEXT = "This tool intentionally returns an error for testing"
_PAUSE_SECONDS = 0.05
"""Between two notifications, as the suite describes it."""


@dataclass(frozen=True)
class Fixture:
    """A tool of the suite."""

    description: str
    handler: Handler
    schema: Mapping[str, Any] = field(default_factory=lambda: NOTHING)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(*content: dict[str, Any], is_error: bool = False) -> dict[str, Any]:
    return {"content": list(content), "isError": is_error}


def strings(*names: str) -> dict[str, Any]:
    """The schema of required texts."""
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


def _png() -> bytes:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


def _wav() -> bytes:
    """Ten samples of silence."""
    written = io.BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(20))
    return written.getvalue()


PNG = b64encode(_png()).decode()
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": b64encode(_wav()).decode(), "mimeType": "audio/wav"}


def embedded(uri: str, mime: str, words: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


def fixed(description: str, *content: dict[str, Any], is_error: bool = False) -> Fixture:
    """A tool that always returns the same."""

    async def handle(_context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
        return result(*content, is_error=is_error)

    return Fixture(description, handle)


# Tools that send something before their result


def _logging(pause: float) -> Handler:
    async def handle(context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await context.session.send_log_message("info", words, related_request_id=context.request_id)
            await asyncio.sleep(pause)
        return result(text("The tool has sent three log messages."))

    return handle


async def _progress(context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(_PAUSE_SECONDS)
    return result(text("The tool has reported its progress."))


async def _reconnection(context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
    await context.session.send_log_message("info", "Before the stream closes", related_request_id=context.request_id)
    assert context.close_sse_stream is not None
    await context.close_sse_stream()
    await asyncio.sleep(2 * _PAUSE_SECONDS)  # the client reconnects
    await context.session.send_log_message("info", "After the stream closed", related_request_id=context.request_id)
    return result(text("Reconnection test completed"))


def _announce(method: str) -> Handler:
    async def handle(context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
        await session_of(context).notify(method, {})
        return result(text(f"{method} was sent to all streams."))

    return handle


async def _needs_sampling(context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise MCPError(
            MISSING_CAPABILITY, "the client does not support sampling", {"requiredCapabilities": {"sampling": {}}}
        )
    return result(text("The client supports sampling."))


async def _region(_context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
    return result(text(f"The region is {(params.arguments or {}).get('region')}."))


_HEADER_SCHEMA = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
_JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def _named(_context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
    return result(text(f"The arguments are {params.arguments}."))


TOOLS = {
    "test_simple_text": fixed("Returns a text.", text(SIMPLE_TEXT)),
    "test_image_content": fixed("Returns an image.", IMAGE),
    "test_audio_content": fixed("Returns a sound.", AUDIO),
    "test_embedded_resource": fixed(
        "Returns a resource.",
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    ),
    "test_multiple_content_types": fixed(
        "Returns a text, an image and a resource.",
        text("Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    "test_error_handling": fixed("Returns an error.", text(ERROR_TEXT), is_error=True),
    "test_tool_with_logging": Fixture("Sends three log messages.", _logging(_PAUSE_SECONDS)),
    "test_logging_tool": Fixture("Sends three log messages if the request asks for them.", _logging(0)),
    "test_tool_with_progress": Fixture("Reports its progress.", _progress),
    "test_reconnection": Fixture("Closes its stream before its result.", _reconnection),
    "test_trigger_tool_change": Fixture(
        "Announces a change of the tools.", _announce("notifications/tools/list_changed")
    ),
    "test_trigger_prompt_change": Fixture(
        "Announces a change of the prompts.", _announce("notifications/prompts/list_changed")
    ),
    "test_missing_capability": Fixture("Needs a client that supports sampling.", _needs_sampling),
    "test_header_argument": Fixture("Has an argument that is repeated in a header.", _region, _HEADER_SCHEMA),
    "json_schema_2020_12_tool": Fixture("Has a schema with many keywords.", _named, _JSON_SCHEMA),
}

RESOURCES: dict[str, dict[str, Any]] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "This resource can be subscribed to."},
}
TEMPLATE = "test://template/{id}/data"

PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
"""The arguments of each prompt."""


def messages(name: str, arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    """The contents of a prompt."""
    return {
        "test_simple_prompt": lambda: [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": lambda: [
            text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")
        ],
        "test_prompt_with_embedded_resource": lambda: [
            embedded(arguments["resourceUri"], "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": lambda: [IMAGE, text("Please analyze the image above.")],
    }[name]()
