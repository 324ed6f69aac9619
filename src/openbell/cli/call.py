"""`openbell call SERVER TOOL '{"json": "arguments"}'`: call one tool in this process.

Standard output contains only the result object. The truth header is one line on standard error, or with `--meta` part of the
output; the second text block of a result, if it has one, is a further line there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openbell.cli.app import AsOf, InScenario, ReadOnly, Trade, app, fail, plain_errors, settings_for
from openbell.servers import NAMES, load

if TYPE_CHECKING:
    from openbell.desk.desk import Desk
    from openbell.desk.settings import Settings
    from openbell.protocol.dialects import Reply
    from openbell.protocol.service import Service


@app.command("call")
def call(
    server: Annotated[str, typer.Argument(help=f"The server: {', '.join(NAMES)}.")],
    tool: Annotated[str, typer.Argument(help="The name of the tool.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="The arguments as a JSON object.")] = "{}",
    trade: Trade = False,
    read_only: ReadOnly = False,
    as_of: AsOf = None,
    scenario: InScenario = None,
    meta: Annotated[
        bool, typer.Option("--meta", help='Print {"result": …, "_meta": {"openbell/truth": …}} as one JSON object.')
    ] = False,
) -> None:
    """Call one tool and print its JSON result; exits with 1 if the result is an error.

    One line on standard error describes the data behind the result: simulated, imported or live, the account, the feed,
    the clock, the age of the latest bar in seconds and the session. With --meta it is part of the output instead.

    Example: openbell call chart-signals get_signals '{"symbol": "AAPL", "timeframe": "5min"}'
    """
    settings = settings_for(as_of, read_only, trade, scenario)
    given = _object(arguments)
    with plain_errors():
        service = load(server, underscore_names=settings.underscore_names)
    with plain_errors():
        is_error = asyncio.run(_call(settings, service, tool, given, meta))
    if is_error:
        raise typer.Exit(1)


def _print(reply: Reply, meta: bool) -> None:
    from pydantic_core import to_json

    from openbell.market.provenance import TRUTH
    from openbell.protocol.call import truth_line

    shown = _shown(reply)
    if meta:
        shown = {"result": shown, "_meta": {TRUTH: reply.truth}}
    else:
        with suppress(OSError):  # print the result even if this line cannot be written
            typer.echo(truth_line(reply.truth), err=True)
            if reply.note is not None:
                typer.echo(reply.note, err=True)
    typer.echo(to_json(shown, inf_nan_mode="null").decode())
    sys.stdout.flush()


def _shown(reply: Reply) -> Any:
    """Returns the result object, with images as base64 under `images`."""
    if not reply.images or reply.repeated:
        return reply.payload
    images = [{"mimeType": image.mime, "data": b64encode(image.data).decode()} for image in reply.images]
    return {"images": images} | ({"summary": reply.payload} if reply.payload is not None else {})


def _object(text: str) -> dict[str, Any]:
    from pydantic_core import from_json

    try:
        # The same parser as in the servers: it refuses invalid UTF-8 and very deep nesting.
        value = from_json(text.encode(errors="surrogateescape"))
    except ValueError as error:
        fail(f"the arguments are not JSON: {error}", 2)
    if not isinstance(value, dict):
        fail('the arguments must be a JSON object, for example \'{"symbol": "AAPL"}\'', 2)
    # The parser keeps the last of equal keys and does not report them.
    json.loads(text, object_pairs_hook=_refuse_repeated_keys, parse_int=str)
    return value


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> None:
    """Exit with an error if two keys of one JSON object are equal."""
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            fail(f"the arguments have the key {json.dumps(key[:80])} {count} times in one object; give it once", 2)


async def _call(settings: Settings, service: Service, tool: str, given: dict[str, Any], meta: bool) -> bool:
    """Call the tool and print its result; returns True if that is an error."""
    from openbell.desk.desk import Desk
    from openbell.protocol.call import Basis, truth
    from openbell.protocol.dialects import Reply
    from openbell.protocol.service import Runner
    from openbell.protocol.session import LOCAL_OPERATOR, Replies, Session, no_notifications

    async with Desk(settings) as desk:
        if tool not in service.by_name:
            payload = {"code": service.dialect.unknown_tool, "message": service.unknown(tool)}
            _print(Reply(payload, is_error=True, truth=truth(desk.settings, desk.clock.epoch(), Basis())), meta)
            return True
        await _note_empty_scenario(desk)
        if settings.trade and not settings.read_only:
            # Fill orders and fire alerts from bars that have closed since the last engine step.
            await desk.trading.catch_up()
        session = Session(LOCAL_OPERATOR, no_notifications, Replies())
        reply = await Runner(service, desk).run(tool, given, session)
        _print(reply, meta)
        await session.replies.sent(None)
        return reply.is_error


async def _note_empty_scenario(desk: Desk) -> None:
    """Print on standard error that the named scenario does not exist: its account looks like any that has not traded."""
    from openbell.desk.settings.open_records import Scenarios
    from openbell.market.nearest import did_you_mean

    name = desk.settings.scenario
    if not name or desk.settings.trade:  # the first order creates it
        return
    if name not in (known := await Scenarios(desk.settings, desk.clock).names()):
        message = f"there is no scenario {name} yet, so its account is new and empty{did_you_mean(name, known)}"
        with suppress(OSError):  # print the result even if this line cannot be written
            typer.echo(f"openbell: {message}", err=True)
