"""The OpenAPI document, and the API walked with requests that schemathesis makes of it: right, wrong and absurd ones."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import jsonschema_rs
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tools.arche_manifest import manifest

from openbell.desk.quotes.arche.errors import ArcheFailed
from openbell.desk.quotes.arche.requests import HISTORICAL, LIVE, ArcheResponse
from openbell.gateway.quotes.openapi import document
from openbell.servers.arche import answers
from openbell.servers.arche.tools import TOOLS
from tests.counts import runs
from tests.gateway.streamable.gateways import Inside

CASES = runs(120, soak=6000)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
MANIFEST = manifest()
RESULTS = {each["name"]: jsonschema_rs.validator_for(each["result_schema"]) for each in MANIFEST["methods"]}
ERROR = jsonschema_rs.validator_for(MANIFEST["errors"]["schema"])
TICKERS = st.lists(st.sampled_from(("AAPL", "btc-usd", "EURUSD", "SPY", "NOPE")), min_size=1, max_size=6).map(",".join)
DAYS = st.integers(1, 28).flatmap(lambda a: st.integers(a, 28).map(lambda b: (f"2025-12-{a:02}", f"2025-12-{b:02}")))
"""What a document cannot say: tickers that exist, and ranges that end after they begin."""


def test_the_document_is_served_and_its_shapes_are_the_manifests(gateway: Inside) -> None:
    answer = gateway.request("GET", "/v2/openapi.json", None)
    assert answer.json == document(gateway.gateway.base)
    shapes = answer.json["components"]["schemas"]
    live, historical = (tool.output_schema or {} for tool in TOOLS[:2])
    quotes = shapes["LiveQuotes"]["properties"]["data"]["properties"]["items"]
    assert quotes["items"] == live["properties"]["quotes"]["items"]
    assert shapes["HistoricalPage"]["properties"]["items"] == historical["properties"]["items"]
    given = {each["name"]: each for each in answer.json["paths"][HISTORICAL]["get"]["parameters"]}
    arguments = TOOLS[1].input_schema
    assert set(given) == set(arguments["properties"])
    assert {name for name, each in given.items() if each["required"]} == set(arguments["required"])
    assert set(answer.json["paths"]) == {LIVE, HISTORICAL, "/healthz"}


def check_result(path: str, found: ArcheResponse) -> None:
    """What the server arche makes of a response is a result or an error of the manifest."""
    try:
        value: dict[str, Any] = {"quotes": answers.quotes_of(found)} if path == LIVE else {**answers.page_of(found)}
    except ArcheFailed as error:
        assert found.status >= 400
        ERROR.validate({"type": error.kind, "message": error.message, **error.fields})
    else:
        name = "quotes.live" if path == LIVE else "quotes.historical"
        whole = {**value, "request_id": found.headers["x-request-id"], "source_status": found.status}
        RESULTS[name].validate(whole)


def test_no_request_is_a_server_error_and_every_response_is_as_documented(gateway: Inside) -> None:
    schema = schemathesis.openapi.from_dict(document(gateway.gateway.base))
    session = requests.Session()
    session.trust_env = False
    statuses: Counter[tuple[str, int]] = Counter()

    def walk(path: str, mode: GenerationMode) -> None:
        operation = schema[path]["GET"]

        # The short form is the same in every run: whether each status comes must not depend on chance.
        @settings(
            max_examples=CASES // 4,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=CASES < 1000,
        )
        @given(operation.as_strategy(generation_mode=mode), st.integers(0, 9), TICKERS, DAYS)
        def ask(case: Case[Any], chance: int, tickers: str, days: tuple[str, str]) -> None:
            if mode is GenerationMode.POSITIVE and chance < 7:
                case.query["tickers"] = tickers
                if path == HISTORICAL:
                    case.query["from"], case.query["to"] = days
            if chance < 9:  # otherwise the token is of schemathesis too
                case.headers.clear()
                case.headers["X-Api-Key"] = gateway.tokens["reader"]
            response = case.call(base_url=gateway.gateway.base, session=session)
            case.validate_response(response, checks=CHECKS)
            statuses[path, response.status_code] += 1
            headers = {name.lower(): values[0] for name, values in response.headers.items()}
            if response.status_code >= 400:
                fields = json.loads(response.content)["error"]
                assert (fields["http_status"], fields["trace_id"]) == (response.status_code, headers["x-request-id"])
            check_result(path, ArcheResponse(response.status_code, headers, response.content))

        ask()

    for path in (LIVE, HISTORICAL):
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            walk(path, mode)
    assert sum(statuses.values()) >= CASES
    assert not [status for _, status in statuses if status >= 500]
    for path in (LIVE, HISTORICAL):
        assert {status for each, status in statuses if each == path} >= {200, 206, 400, 401, 404}, statuses
