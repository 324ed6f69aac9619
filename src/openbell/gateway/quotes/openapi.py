"""The OpenAPI document of the quotes API. Its shapes are those of the manifest's methods."""

from __future__ import annotations

from functools import cache
from typing import Any

from openbell.desk.quotes.arche.requests import API_VERSION, HEALTH, HISTORICAL, LAST_PAGE, LIVE, TICKER
from openbell.servers.arche.tools import TOOLS, VERSION

PATH = f"/{API_VERSION}/openapi.json"
Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_LIMIT_HEADERS = {
    "X-RateLimit-Limit": "Requests that may come at once after a pause.",
    "X-RateLimit-Remaining": "Requests that may come now.",
    "X-RateLimit-Reset": "Seconds until the whole limit is left again.",
}
_ERRORS = {
    400: "A parameter is missing, wrong, repeated or unknown: VALIDATION_ERROR.",
    401: "No valid token or key: UNAUTHENTICATED.",
    403: "The token has not the scope read: FORBIDDEN.",
    404: "No ticker is known: SYMBOL_NOT_FOUND.",
    414: "The query is too long: VALIDATION_ERROR.",
    429: "Too many requests: RATE_LIMITED.",
    500: "INTERNAL_ERROR.",
    503: "No ticker has current data, or the gateway is busy: MARKET_DATA_UNAVAILABLE.",
}


@cache
def document(base: str) -> Schema:
    """Returns the document of a gateway at a URL."""
    live, historical = TOOLS[0], TOOLS[1]
    assert live.output_schema is not None
    assert historical.output_schema is not None
    page = historical.output_schema["properties"]
    fields = {name: page[name] for name in ("page", "page_size", "total")}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Openbell quotes (Arche)",
            "version": VERSION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base}],
        "security": [{"bearer": []}, {"key": []}],
        "paths": {
            LIVE: {"get": _operation("quotesLive", live.description, [_tickers()], "LiveQuotes")},
            HISTORICAL: {
                "get": _operation(
                    "quotesHistorical", historical.description, _range(historical.input_schema), "HistoricalPage"
                )
            },
            HEALTH: {"get": _health()},
        },
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
            },
            "schemas": {
                "LiveQuotes": _object(
                    data=_object(
                        items={"type": "array", "items": live.output_schema["properties"]["quotes"]["items"]},
                        missing=_missing(),
                    )
                ),
                "HistoricalPage": _object(**fields, items=page["items"], missing=_missing()),
                "Error": _object(error=_error()),
            },
        },
    }


def _object(**fields: Schema) -> Schema:
    """Returns the schema of an object; `missing` is the one field that may be left out."""
    required = [name for name in fields if name != "missing"]
    return {"type": "object", "required": required, "additionalProperties": False, "properties": fields}


def _missing() -> Schema:
    """Returns the schema of the tickers without an answer."""
    return {"type": "array", "minItems": 1, "items": _object(ticker=_TEXT, reason=_TEXT)}


def _error() -> Schema:
    details = {"type": "array", "items": {"type": "object", "additionalProperties": _TEXT}}
    return _object(code=_TEXT, http_status={"type": "integer"}, message=_TEXT, details=details, trace_id=_TEXT)


def _tickers() -> Schema:
    bounds = TOOLS[0].input_schema["properties"]["tickers"]
    items = {"type": "string", "pattern": f"^{TICKER}$"}
    schema = {"type": "array", "items": items, "minItems": bounds["minItems"], "maxItems": bounds["maxItems"]}
    return {**_parameter("tickers", schema, required=True), "style": "form", "explode": False, "example": ["AAPL"]}


def _range(arguments: Schema) -> list[Schema]:
    """Returns the parameters of a range, from the arguments of the method."""
    given = dict(arguments["properties"])
    del given["tickers"]
    given["page"] = {**given["page"], "maximum": LAST_PAGE}
    return [
        _tickers(),
        *(_parameter(name, each, required=name in arguments["required"]) for name, each in given.items()),
    ]


def _parameter(name: str, schema: Schema, *, required: bool) -> Schema:
    return {"name": name, "in": "query", "required": required, "schema": schema}


def _operation(name: str, summary: str, parameters: list[Schema], shape: str) -> Schema:
    headers = {each: {"description": text, "schema": {"type": "integer"}} for each, text in _LIMIT_HEADERS.items()}
    kept = {"ETag": {"schema": _TEXT}, "Cache-Control": {"schema": _TEXT}, "X-Request-ID": {"schema": _TEXT}}
    success = {"headers": {**headers, **kept}, "content": _json(shape)}
    responses: Schema = {
        "200": {"description": "All tickers are answered.", **success},
        "206": {"description": "Some tickers are answered; `missing` names the others.", **success},
        "304": {"description": "The answer is the one that If-None-Match names.", "headers": {**headers, **kept}},
        **{str(status): {"description": text, "content": _json("Error")} for status, text in _ERRORS.items()},
    }
    return {"operationId": name, "summary": summary, "parameters": parameters, "responses": responses}


def _json(shape: str) -> Schema:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{shape}"}}}


def _health() -> Schema:
    shape = {"type": "object", "required": ["status"], "properties": {"status": {"enum": ["ok", "degraded"]}}}
    responses = {
        "200": {"description": "The process answers.", "content": {"application/json": {"schema": shape}}},
        "429": {"description": _ERRORS[429], "content": _json("Error")},
    }
    return {"operationId": "health", "summary": "Whether the desk works.", "security": [], "responses": responses}
