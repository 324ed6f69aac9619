"""Principals: their names, and how much of each kind one may keep on a desk.

What counts is checked where it is written: in the same transaction, or under the same lock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from openbell.backtest.wire.limits import MEGABYTE
from openbell.desk.settings import Settings
from openbell.market.errors import QuotaExceeded
from openbell.market.plural import counted

OPERATOR = "local"
"""The principal of the user who started this desk on this machine. Other principals get their names when they log in."""

SUBJECT = re.compile(r"[a-z0-9._-]{1,64}")
"""The name of a principal."""

SHORTEST_PASSPHRASE = 12
LONGEST_PASSPHRASE = 1024
"""Characters of a passphrase with which a user signs in."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that a principal may keep of one kind."""

    setting: str
    most: int
    what: str
    """In the singular, such as `active alert`."""
    plural: str
    remedy: str
    """What a principal can do that has no room left."""

    @classmethod
    def of(cls, settings: Settings, setting: str) -> Quota:
        """Returns the quota of a setting."""
        return cls(setting, int(getattr(settings, setting)), *KINDS[setting])

    def check(self, used: int) -> None:
        """Raises `QuotaExceeded` if there is no room for one more."""
        if used >= self.most:
            raise self._exceeded(counted(used, self.what, self.plural), used)

    def check_bytes(self, used: int, new: int) -> None:
        """Raises `QuotaExceeded` if there is no room for `new` bytes, of a quota in megabytes."""
        if used + new > self.most * MEGABYTE:
            megabytes = round(used / MEGABYTE, 1)
            raise self._exceeded(f"{megabytes:,.1f} {self.plural}", megabytes)

    def _exceeded(self, shown: str, used: float) -> QuotaExceeded:
        text = f"you have {shown}, and the most is {self.most:,} (OPENBELL_{self.setting.upper()}): {self.remedy}"
        return QuotaExceeded(text, quota=self.setting, used=used, limit=self.most)


_ASK = "ask the operator of this desk for more"
KINDS = {
    "quota_pictures": ("stored picture", "stored pictures", f"wait until some expire, or {_ASK}"),
    "quota_pictures_mb": (
        "megabyte of stored pictures",
        "megabytes of stored pictures",
        f"wait until some expire, or {_ASK}",
    ),
    "quota_decisions": ("decision", "decisions", f"they are kept for good; {_ASK}"),
    "quota_decisions_mb": (
        "megabyte of decisions",
        "megabytes of decisions",
        f"they are kept for good; use shorter ones, or {_ASK}",
    ),
    "quota_specs": ("spec", "specs", f"they are kept for good; {_ASK}"),
    "quota_alerts": ("active alert", "active alerts", "cancel some with cancel_alert"),
    "quota_subscriptions": ("open subscription", "open subscriptions", "end one with unsubscribe_alerts"),
}
"""What each setting limits, in the singular and the plural, and what to do."""
