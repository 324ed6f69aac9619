"""A principal's webhooks: adding, listing and removing them, deliveries that were given up, and requests that come in.

What an inbound request says becomes an entry of its owner's inbox, cleaned and bounded. It is never an order. The body is a
JSON object, or text. The secret is its field `secret` or its first line, unless a header brings it: TradingView cannot set
headers. Everything in the body comes from outside: the entry names its origin, says that it is not trusted, has none of the
fields of a fired alert, and nothing acts on it.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeVar

from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter, NoSuchWebhook, Refused
from openbell.market.foreign_text import without_invisible
from openbell.market.instruments import parse
from openbell.net.addresses import parse_target
from openbell.stores.records import webhooks as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import RecordAccess, Records
from openbell.stores.records.snapshot import View
from openbell.stores.records.webhooks import INBOUND, OUTBOUND, Delivery, Webhook

T = TypeVar("T")
EVENTS = ("alert", "fill")
MOST_WEBHOOKS = 50
"""How many webhooks a principal may have."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,59}")


@dataclass(frozen=True, slots=True)
class Listed:
    """A webhook, and how many of its deliveries wait or are dead."""

    webhook: Webhook
    waiting: int
    dead: int


class WebhookService:
    """The webhooks of principals."""

    def __init__(self, records: Records, trusted: Iterable[str] = ()) -> None:
        """`trusted` are origins for which plain HTTP and private addresses are allowed (`net/addresses.py`)."""
        self._records = records
        self._trusted = frozenset(trusted)

    @property
    def active(self) -> bool:
        """Whether this desk sends and receives: only at the present, and only if it may write."""
        return self._records.access is RecordAccess.PRESENT and not self._records.read_only

    async def add(
        self, principal: str, url: str, events: Iterable[str] = (), symbols: Iterable[str] = ()
    ) -> tuple[Webhook, str]:
        """Send events of some kinds (none: all) about some symbols (none: all) to a URL, from now on.

        Returns the webhook and its signing secret, which is not returned again. Raises `OutboundRefused` if the URL is
        not allowed, `InvalidParameter` or `InvalidSymbol` for the others.
        """
        target = parse_target(url, self._trusted)
        wanted = frozenset(events) or frozenset(EVENTS)
        if unknown := sorted(wanted - set(EVENTS)):
            raise InvalidParameter(f"no event {unknown[0][:40]!r}; use {', '.join(EVENTS)}")
        names = frozenset(parse(each).symbol for each in symbols)
        key, secret = f"wh_{secrets.token_hex(6)}", f"whsec_{secrets.token_urlsafe(32)}"
        chosen = tuple(each for each in EVENTS if each in wanted)

        def work(journal: Journal) -> Webhook:
            self._require_room(journal.view, principal)
            made = Webhook(
                key, principal, OUTBOUND, "", url, chosen, names, secret, created_at=journal.at, since=journal.seq
            )
            shown = {"origin": target.origin, "events": list(chosen), "symbols": sorted(names)}
            queries.add(journal, made, shown)
            return made

        return await self._write(work), secret

    async def add_inbound(self, principal: str, name: str) -> tuple[Webhook, str]:
        """Accept requests at `/webhooks/ID`; returns the webhook and the secret that each request must bring.

        Raises `InvalidParameter` for a name that is not allowed.
        """
        if not _NAME.fullmatch(name):
            raise InvalidParameter(
                "a name has 1 to 60 letters, digits, spaces, dots, dashes and underscores, and starts with a letter or digit"
            )
        key, secret = f"in_{secrets.token_hex(16)}", secrets.token_urlsafe(24)
        hashed = hash_of(secret)

        def work(journal: Journal) -> Webhook:
            self._require_room(journal.view, principal)
            made = Webhook(key, principal, INBOUND, name, "", (), frozenset(), hashed, journal.at, journal.seq)
            queries.add(journal, made, {"name": name})
            return made

        return await self._write(work), secret

    async def list(self, principal: str) -> Sequence[Listed]:
        """Returns a principal's webhooks, oldest first."""

        def work(view: View) -> list[Listed]:
            numbers = queries.counts(view)
            found = queries.of_principal(view, principal)
            return [Listed(each, numbers.get((each.id, False), 0), numbers.get((each.id, True), 0)) for each in found]

        return await self._records.read(work)

    async def remove(self, principal: str, webhook_id: str) -> None:
        """Remove a webhook with everything that waits for it. Raises `NoSuchWebhook`."""
        if not await self._write(lambda journal: queries.remove(journal, principal, webhook_id)):
            raise NoSuchWebhook("there is no webhook with this id; openbell webhook list shows all")

    async def dead(self, principal: str) -> Sequence[Delivery]:
        """Returns a principal's deliveries that were given up, oldest first."""
        return await self._records.read(queries.dead_of, principal)

    async def retry(self, principal: str, key: str) -> int:
        """Send a dead delivery again, or all of a webhook; returns how many. Raises `NoSuchWebhook` if there is none."""

        def work(journal: Journal) -> int:
            chosen = [each.id for each in queries.dead_of(journal.view, principal) if key in {each.id, each.webhook_id}]
            queries.revive(journal, chosen, time.time())
            return len(chosen)

        if count := await self._write(work):
            return count
        raise NoSuchWebhook("there is no dead delivery with this id; openbell webhook dead shows all")

    async def _write(self, work: Callable[[Journal], T]) -> T:
        if self._records.access is not RecordAccess.PRESENT:
            raise Refused("webhooks belong to the present: unset OPENBELL_AS_OF and do not use a replayed feed")
        return await self._records.write(work)

    @staticmethod
    def _require_room(view: View, principal: str) -> None:
        if len(queries.of_principal(view, principal)) >= MOST_WEBHOOKS:
            raise Refused(f"there are {MOST_WEBHOOKS} webhooks already: remove one first")


def hash_of(secret: str) -> str:
    """Returns the form in which the secret of an inbound webhook is stored."""
    return sha256(secret.encode(errors="replace")).hexdigest()


LARGEST = 16_384
"""Bytes of a body."""
REPEAT_SECONDS = 60.0
"""How long an identical body is not recorded again."""
LONGEST_MESSAGE, LONGEST_VALUE, LONGEST_NAME, MOST_FIELDS = 4_000, 500, 60, 32
_LARGEST_NUMBER = 1e18
SOURCE = "webhook"
"""`source` of an entry of the inbox that an inbound webhook has made; fired alerts have none."""
_NOBODY = hash_of(secrets.token_hex())
"""Compared with if there is no such webhook: finding out takes as long as for one that exists."""


@dataclass(frozen=True, slots=True)
class Message:
    """A body, parsed."""

    secret: str
    fields: Mapping[str, Any]
    """Without the secret."""
    text: str | None = None
    """All of a body that is text."""

    def without_secret(self) -> Mapping[str, Any]:
        """Returns the fields of a body that brings no secret: the first line of a text is then a part of the message."""
        return self.fields if self.text is None else _message(self.text)


def _masked(value: Any, secrets: Sequence[str]) -> Any:
    """Returns a value in whose texts and names no secret stands: senders may repeat theirs in the message."""
    if isinstance(value, str):
        for each in secrets:
            value = value.replace(each, "***")
        return value
    if isinstance(value, Mapping):
        return {_masked(name, secrets): _masked(each, secrets) for name, each in value.items()}
    return [_masked(each, secrets) for each in value] if isinstance(value, list | tuple) else value


def parse_body(body: bytes) -> Message:
    """Returns the secret and the fields of a body: a JSON object, or text whose first line is the secret."""
    text = body.decode("utf-8", errors="replace").removeprefix("\ufeff")
    try:
        found = json.loads(text, parse_constant=_no_number)
        if isinstance(found, dict):
            secret = found.pop("secret", "")
            kept = [(clean(name, LONGEST_NAME), value) for name, value in list(found.items())[:MOST_FIELDS]]
            fields = {name: _value(name, value) for name, value in kept if name}
            return Message(secret if isinstance(secret, str) else "", fields)
    except (ValueError, RecursionError):
        pass  # not JSON, or nested too deeply
    first, _, rest = text.partition("\n")
    return Message(first.strip(), _message(rest), text)


def _message(text: str) -> Mapping[str, Any]:
    cleaned = clean(text, LONGEST_MESSAGE)
    return {"message": cleaned} if cleaned else {}


def clean(text: str, longest: int) -> str:
    """Returns a text without characters that are not seen, cut to a length."""
    return without_invisible(text).strip()[:longest]


def _no_number(_name: str) -> None:
    """NaN and infinities, which TradingView writes for values that it does not have, become null."""


def _value(name: str, value: Any) -> Any:
    """Returns a field as it is kept: numbers and flags as they are, texts cleaned, lists and objects as JSON text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if abs(value) < _LARGEST_NUMBER else clean(str(value), LONGEST_VALUE)
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return clean(value, LONGEST_MESSAGE if name == "message" else LONGEST_VALUE)


def entry_of(webhook: Webhook, fields: Mapping[str, Any], at: float) -> dict[str, Any]:
    """Returns the entry of a request. What the sender wrote is a value in it, never a name."""
    return {
        "alert_id": f"in_{secrets.token_hex(8)}",
        "source": SOURCE,
        "webhook": webhook.name,
        "trusted": False,
        "triggered_at": iso(at),
        "fields": [{"name": name, "value": value} for name, value in fields.items()],
    }


class Receiver:
    """Puts what arrives at inbound webhooks into the inboxes of their owners."""

    def __init__(self, records: Records, webhooks: WebhookService, now: Callable[[], float] = time.time) -> None:
        self._records = records
        self._webhooks = webhooks
        self._now = now

    @property
    def active(self) -> bool:
        """Whether this desk receives: only at the present, and only if it may write."""
        return self._webhooks.active

    async def receive(self, webhook_id: str, offered: Iterable[str], body: bytes) -> bool:
        """Record a request; returns False if the id is unknown or no secret fits, without telling which.

        `offered` are secrets from headers. An identical body within a minute is accepted and not recorded again.
        """
        message = parse_body(body)

        def find(view: View) -> Webhook | None:
            return queries.inbound(view, webhook_id)

        webhook = await self._records.read(find)
        expected, offered = _NOBODY if webhook is None else webhook.secret, list(offered)
        fits = [hmac.compare_digest(hash_of(each), expected) for each in (*offered, message.secret)]
        if webhook is None or not any(fits):
            return False
        brought = [each for each, fit in zip((*offered, message.secret), fits, strict=True) if fit]
        fields = _masked(message.fields if fits[-1] else message.without_secret(), brought)
        digest, now = sha256(body).hexdigest(), self._now()

        def work(journal: Journal) -> None:
            # It may have been removed since.
            if find(journal.view) and not queries.is_repeated(journal.view, webhook.id, digest, now, REPEAT_SECONDS):
                queries.deliver_to_inbox(journal, webhook.principal, entry_of(webhook, fields, journal.at))

        await self._records.write(work)
        return True
