"""Ids of events that a principal receives: the time at which the event was queued, in microseconds, and the ledger's name.

The time shows a principal only what its own events show too. A position in the ledger would also show how much others have
written between two events.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from openbell.stores.records.alerts import Notification, microseconds

_ID = re.compile(r"([0-9a-f]{14})-([0-9a-f]{0,8})")


def event_id(queued: Notification, ledger: str) -> str:
    """Returns the id of an event. Later ones of a principal have larger ids."""
    return f"{microseconds(queued.queued):014x}-{ledger}"


def position_of(event: str, queued: Sequence[Notification], ledger: str) -> int | None:
    """Returns the cursor after which a client has yet to receive what is queued for it, oldest first.

    None if the id is not one of this ledger. The event itself may have left the queue.
    """
    found = _ID.fullmatch(event)
    if found is None or found[2] != ledger:
        return None
    at = int(found[1], 16)
    # Notifications of an earlier time can have the same time: those are sent again.
    same = [each.cursor for each in queued if microseconds(each.queued) == at]
    before = [each.cursor for each in queued if microseconds(each.queued) < at]
    return same[0] if len(same) == 1 else max(before, default=0)
