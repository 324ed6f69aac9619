"""What an answer to an order or a cancellation leaves certain.

| answer | outcome |
|---|---|
| 400, 401, 403, 404, 422 in Alpaca's own form | `BrokerRefused`: nothing was done |
| … that says that the client_order_id is taken | `OutcomeUnknown`: an order of ours is there, `find` tells which |
| 429 | `BrokerUnavailable`: not taken, with a time to come back |
| anything else that is no success: 3xx, 5xx, a proxy's page | `OutcomeUnknown` |
"""

from __future__ import annotations

import re

from openbell.brokers.alpaca.http import Answer
from openbell.brokers.alpaca.wire import Complaint
from openbell.feeds.alpaca.refusals import KEYS_REFUSED
from openbell.trading.broker import BrokerError, BrokerRefused, BrokerUnavailable, OutcomeUnknown

_SURE = frozenset({400, 401, 403, 404, 422})
_TAKEN = re.compile(r"client[ _-]?order[ _-]?id.*(unique|exist|duplicate|used)", re.IGNORECASE)
_WAIT = 60.0
"""Seconds of the vendor's window, when it does not say how much of it is left."""
_ASK = "ask for it by its id, do not send it again"


def failure(answer: Answer, complaint: Complaint | None, what: str, hint: float | None) -> BrokerError:
    """What it means that `what` (an order, a cancellation) was not answered with success."""
    status = answer.status
    if status == 429:
        wait = hint or _WAIT
        return BrokerUnavailable(
            f"Alpaca takes no more requests this minute and did not take the {what}: try again in {wait:.0f} s",
            status=status,
            retry_after_s=wait,
        )
    if complaint is None or status not in _SURE:
        return OutcomeUnknown(
            f"Alpaca's answer to the {what} (HTTP {status}) does not say what became of it: {_ASK}", status=status
        )
    if _TAKEN.search(complaint.message):
        return OutcomeUnknown(f"Alpaca has an order under this id already: {_ASK}", status=status, code=complaint.code)
    return BrokerRefused(f"Alpaca refuses the {what}: {said(status, complaint)}", status=status, code=complaint.code)


def said(status: int, complaint: Complaint) -> str:
    """The vendor's words, and what to do where it is about the keys."""
    about_keys = status == 401 or complaint.message.lower().rstrip(".") in {"forbidden", "unauthorized"}
    return f"{complaint.message} (HTTP {status}){'. ' + KEYS_REFUSED if about_keys else ''}"


def not_sent(fault: object, what: str) -> BrokerUnavailable:
    """Nothing left this machine."""
    return BrokerUnavailable(
        f"Alpaca cannot be reached ({fault}), the {what} was not sent: look at the network here and try again"
    )


def no_answer(fault: object, what: str) -> OutcomeUnknown:
    """It may have arrived."""
    return OutcomeUnknown(f"The {what} was sent and Alpaca did not answer ({fault}): {_ASK}")
