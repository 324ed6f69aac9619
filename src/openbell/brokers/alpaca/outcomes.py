"""The error for each failed answer to an order or a cancellation.

| answer | error |
|---|---|
| 400, 401, 403, 404, 422 in Alpaca's own form | `BrokerRefused`: nothing was done |
| … saying that the client_order_id exists already | `OutcomeUnknown`: Alpaca has an order with our id; `find` returns it |
| 429 | `BrokerUnavailable`: not accepted, with the seconds until a retry |
| any other failure: 3xx, 5xx, a proxy's page | `OutcomeUnknown` |
"""

from __future__ import annotations

import re

from openbell.brokers.alpaca.wire import Complaint
from openbell.feeds.alpaca.refusals import KEYS_REFUSED
from openbell.net.response import Response
from openbell.trading.broker import BrokerError, BrokerRefused, BrokerUnavailable, OutcomeUnknown

_REFUSALS = frozenset({400, 401, 403, 404, 422})
_ID_EXISTS = re.compile(r"client[ _-]?order[ _-]?id.*(unique|exist|duplicate|used)", re.IGNORECASE)
_WAIT = 60.0
"""Seconds until a retry, if Alpaca does not name them: the length of its rate limit window."""
_LOOK_UP = "look it up by its id, do not send it again"


def failure(answer: Response, complaint: Complaint | None, what: str, hint: float | None) -> BrokerError:
    """The error for a failed answer to `what`, an order or a cancellation; `hint` is the seconds until a retry."""
    status = answer.status
    if status == 429:
        wait = hint or _WAIT
        return BrokerUnavailable(
            f"Alpaca's limit of requests is reached and it did not accept the {what}: try again in {wait:.0f} s",
            status=status,
            retry_after_s=wait,
        )
    if complaint is None or status not in _REFUSALS:
        return OutcomeUnknown(
            f"Alpaca's answer to the {what} (HTTP {status}) leaves its outcome unknown: {_LOOK_UP}", status=status
        )
    if _ID_EXISTS.search(complaint.message):
        return OutcomeUnknown(
            f"Alpaca already has an order with this id: {_LOOK_UP}", status=status, code=complaint.code
        )
    message = f"Alpaca refused the {what}: {describe(status, complaint)}"
    return BrokerRefused(message, status=status, code=complaint.code)


def describe(status: int, complaint: Complaint) -> str:
    """Alpaca's message and status, with advice if they are about the keys."""
    about_keys = status == 401 or complaint.message.lower().rstrip(".") in {"forbidden", "unauthorized"}
    return f"{complaint.message} (HTTP {status}){'. ' + KEYS_REFUSED if about_keys else ''}"


def not_sent(fault: object, what: str) -> BrokerUnavailable:
    """The error for an order or a cancellation that was not sent."""
    return BrokerUnavailable(
        f"Alpaca cannot be reached ({fault}), the {what} was not sent: check this machine's network and try again"
    )


def no_answer(fault: object, what: str) -> OutcomeUnknown:
    """The error for an order or a cancellation that may have arrived."""
    return OutcomeUnknown(f"The {what} was sent and Alpaca did not answer ({fault}): {_LOOK_UP}")
