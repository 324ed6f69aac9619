"""Tools that need something of the client: by a request to it in the handshake revisions, by a result of the kind
`input_required` in 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types

from tests.gateway.conformance.fixtures import Context, Fixture, result, strings, text

Inputs = dict[str, dict[str, Any]]


def _form(message: str, **properties: Any) -> dict[str, Any]:
    """An elicitation."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def _sampling(prompt: str, tokens: int = 100) -> dict[str, Any]:
    message = {"role": "user", "content": text(prompt)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens}}


_ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}
_STRING = {"type": "string"}
_NAME = _form("What is your name?", name=_STRING)
_CONFIRMATION: Inputs = {"confirm": _form("Please confirm", ok={"type": "boolean"})}
PROMPT_INPUT: Inputs = {"user_context": _form("What context should the prompt use?", context=_STRING)}


def asked(requests: Inputs, state: str | None = None) -> dict[str, Any]:
    """The result that asks the client for something."""
    found: dict[str, Any] = {"resultType": "input_required", "inputRequests": requests}
    return found if state is None else {**found, "requestState": state}


def answers(context: Context) -> Mapping[str, Any]:
    """What the client has sent; the SDK has checked its types."""
    return (context.params or {}).get("inputResponses") or {}


def _one_round(requests: Inputs, state: str | None = None) -> Fixture:
    """A tool that asks until it has all answers and its own state."""

    async def handle(context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        given = answers(context)
        if not requests.keys() <= given.keys() or params.request_state != state:
            return asked(requests, state)
        proof = "state-ok " if state else ""
        return result(text(f"{proof}{ {key: given[key] for key in requests} }"))

    return Fixture("Asks the client, then returns its answers.", handle)


async def _two_rounds(context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
    given, state = answers(context), params.request_state or ""
    if state.startswith("named ") and "step2" in given:
        return result(text(f"{state}, {given['step2']['content']['color']}"))
    if state == "begun" and "step1" in given:
        name = given["step1"]["content"]["name"]
        return asked({"step2": _form("Step 2: What is your favorite color?", color=_STRING)}, f"named {name}")
    return asked({"step1": _form("Step 1: What is your name?", name=_STRING)}, "begun")


async def _as_able(context: Context, _params: types.CallToolRequestParams) -> dict[str, Any]:
    able = context.session.client_capabilities or types.ClientCapabilities()
    given = answers(context)
    wanted: Inputs = {}
    if able.elicitation is not None:
        wanted["user_name"] = _NAME
    if able.sampling is not None:
        wanted["greeting"] = _sampling("Generate a greeting")
    return result(text(str(dict(given)))) if wanted.keys() <= given.keys() else asked(wanted)


# Requests to the client, in the handshake revisions


async def _sample(context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
    prompt = types.TextContent(type="text", text=(params.arguments or {})["prompt"])
    answer = await context.session.create_message(
        [types.SamplingMessage(role="user", content=prompt)], max_tokens=100, related_request_id=context.request_id
    )
    return result(text(f"LLM response: {getattr(answer.content, 'text', '')}"))


def _elicit(schema: Mapping[str, Any], message: Callable[[Mapping[str, Any]], str]) -> Fixture:
    async def handle(context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        answer = await context.session.elicit_form(
            message(params.arguments or {}), dict(schema), related_request_id=context.request_id
        )
        return result(text(f"User response: action={answer.action}, content={answer.content}"))

    return Fixture("Asks the user.", handle)


_STATES = ["active", "inactive", "pending"]
_WITH_DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": _STATES, "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
_WITH_ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _OPTIONS},
        "titledSingle": {"type": "string", "oneOf": _TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
    },
}
_ELICITATION = _elicit(strings("username", "email"), lambda given: str(given["message"]))

TOOLS = {
    "test_sampling": Fixture("Asks the client's model.", _sample, strings("prompt")),
    "test_elicitation": Fixture("Asks the user.", _ELICITATION.handler, strings("message")),
    "test_elicitation_sep1034_defaults": _elicit(_WITH_DEFAULTS, lambda _: "Please provide user information"),
    "test_elicitation_sep1330_enums": _elicit(_WITH_ENUMS, lambda _: "Please select values"),
    "test_streaming_elicitation": _one_round({"user_name": _NAME}),
    "test_input_required_result_elicitation": _one_round({"user_name": _NAME}),
    "test_input_required_result_sampling": _one_round(
        {"capital_question": _sampling("What is the capital of France?")}
    ),
    "test_input_required_result_list_roots": _one_round({"client_roots": _ROOTS}),
    "test_input_required_result_request_state": _one_round(_CONFIRMATION, "confirming"),
    "test_input_required_result_tampered_state": _one_round(_CONFIRMATION, "confirming"),
    "test_input_required_result_multiple_inputs": _one_round(
        {"user_name": _NAME, "greeting": _sampling("Generate a greeting", 50), "client_roots": _ROOTS}, "asking"
    ),
    "test_input_required_result_multi_round": Fixture("Asks the client twice.", _two_rounds),
    "test_input_required_result_capabilities": Fixture("Asks for what the client supports.", _as_able),
}
