"""Rate limits of the quotes API: for each principal, in all and for each kind of request."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from openbell.desk.quotes.arche.requests import HISTORICAL, LIVE
from openbell.desk.settings import Settings
from openbell.gateway.guard.limits import CallLimits
from openbell.gateway.guard.refusals import GuardRefusal, Headers
from openbell.net.rates import Rate, Standing

KINDS = {LIVE: ("quotes", "quotes_live"), HISTORICAL: ("quotes", "quotes_historical")}
"""The limits of each path."""
HEALTH = ("health",)
METADATA = ("metadata",)


class QuoteRates:
    """Counts requests. A request that one of its limits refuses counts for none."""

    def __init__(self, settings: Settings) -> None:
        names = {name for kinds in (*KINDS.values(), HEALTH, METADATA) for name in kinds}
        rates = {name: int(settings.by_name[f"rate_{name}"]) for name in names}
        # A whole minute's requests may come at once.
        self._limits = CallLimits({name: Rate(rate, rate) for name, rate in rates.items() if rate})

    def take(self, principal: str, kinds: Sequence[str]) -> GuardRefusal | None:
        """Take one request of all kinds. Returns why there is none left."""
        for kind in kinds:
            standing = self._limits.standing(principal, kind)
            if standing is not None and standing.wait:
                message = f"Too many requests: retry later. The limit is OPENBELL_RATE_{kind.upper()} per minute."
                return GuardRefusal(429, "rate_limited", message, standing.wait, headers=tuple(_headers(standing)))
        for kind in kinds:
            self._limits.take(principal, kind)
        return None

    def headers(self, principal: str, kinds: Sequence[str]) -> Headers:
        """Returns the headers of the tightest limit."""
        left = [found for kind in kinds if (found := self._limits.standing(principal, kind)) is not None]
        return _headers(min(left, key=lambda each: each.remaining)) if left else []


def _headers(standing: Standing) -> Headers:
    """Returns the headers; the reset is in seconds from now."""
    return [
        (b"x-ratelimit-limit", b"%d" % standing.limit),
        (b"x-ratelimit-remaining", b"%d" % standing.remaining),
        (b"x-ratelimit-reset", b"%d" % ceil(standing.reset)),
    ]
