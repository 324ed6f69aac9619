"""Responses of the quotes API: success and error envelopes, validators and cache rules.

The body depends on the content alone. The id of the request is in a header, so that equal content has an equal ETag.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from openbell.desk.quotes.arche.errors import STATUSES, ApiFault
from openbell.desk.quotes.arche.requests import AnswerFacts, ArcheResponse, Missing

JSON = "application/json"
_SHOWN = 10
"""Tickers that the text of an error names, and tickers that get suggestions in a note."""
SHORT = "private, max-age=5"
LONG = "private, max-age=60"
ALWAYS_ASK = "private, no-cache"
NEVER = "no-store"


def success(payload: Mapping[str, Any], missing: Sequence[Missing], cache: str, facts: AnswerFacts) -> ArcheResponse:
    """Returns the response with an answer: 206 if some tickers are missing, else 200."""
    if missing:
        # The result of the MCP tool has no field for them: its truth header and its second text block do.
        note = "; ".join(filter(None, (facts.bars.failure, *_told(missing))))
        facts = replace(facts, bars=replace(facts.bars, failure=note))
    body = _bytes(payload)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"content-type": JSON, "etag": tag, "cache-control": cache}
    return ArcheResponse(206 if missing else 200, headers, body, facts)


def _told(missing: Sequence[Missing]) -> list[str]:
    """Returns which known tickers have no data and why, and which are not found and their nearest names."""
    known = [each for each in missing if each.known]
    unknown = [
        each.ticker + (f" ({each.hint.removeprefix('; ')})" if each.hint and place < _SHOWN else "")
        for place, each in enumerate(each for each in missing if not each.known)
    ]
    told = [f"no answer for {', '.join(each.ticker for each in known)}: {known[0].reason}"] if known else []
    return [*told, f"not found: {', '.join(unknown)}"] if unknown else told


def listed(missing: Sequence[Missing]) -> dict[str, Any]:
    """Returns the part of an answer that names its missing tickers; empty if there are none."""
    return (
        {"missing": [{"ticker": each.ticker, "reason": each.reason + each.hint} for each in missing]} if missing else {}
    )


def plain(status: int, payload: Mapping[str, Any]) -> ArcheResponse:
    """Returns a response that nobody keeps."""
    return ArcheResponse(status, {"content-type": JSON, "cache-control": NEVER}, _bytes(payload))


def failure(fault: ApiFault, request_id: str) -> ArcheResponse:
    """Returns the response for an error."""
    status = STATUSES[fault.code]
    return plain(status, envelope(fault.code, status, fault.message, request_id, fault.faults))


def envelope(
    code: str, status: int, message: str, trace_id: str, details: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Returns the error envelope."""
    fields = {"code": code, "http_status": status, "message": message, "details": list(details), "trace_id": trace_id}
    return {"error": fields}


def none_answered(missing: Sequence[Missing]) -> ApiFault:
    """Returns the error for a request without any answer: unknown tickers, or known ones without current data."""
    unavailable = [each for each in missing if each.known]
    shown = unavailable or missing
    names = ", ".join(each.ticker for each in shown[:_SHOWN]) + (", …" if len(shown) > _SHOWN else "")
    details = [{"field": "tickers", "ticker": each.ticker, "reason": each.reason + each.hint} for each in missing]
    if unavailable:
        return ApiFault("MARKET_DATA_UNAVAILABLE", f"No current data of {names}: {shown[0].reason}", details)
    return ApiFault(
        "SYMBOL_NOT_FOUND", f"No such ticker: {names}{next((each.hint for each in shown if each.hint), '')}", details
    )


def _bytes(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload, separators=(",", ":"), allow_nan=False).encode()
