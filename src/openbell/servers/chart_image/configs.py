"""construct_chart_config, validate_chart_config and generate_chart_image."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from openbell.charts.config.choices import FORMATS, PLANS, THEMES
from openbell.desk.pictures.chart_image.errors import VendorError
from openbell.market.clock import iso
from openbell.market.errors import (
    DataError,
    InvalidParameter,
    InvalidSymbol,
    InvalidTimeframe,
    Refused,
    StoreError,
    UnknownSymbol,
)
from openbell.market.nearest import check_one_of
from openbell.market.timeframes import CHART, name_of, parse_timeframe
from openbell.protocol.call import Basis, Call, Result, on_bars
from openbell.protocol.dialects import Media, MediaPicture
from openbell.protocol.result_fields import shaped, stated
from openbell.protocol.session import Scope
from openbell.protocol.tool import Effect, Reads, Tool, require_scope
from openbell.servers.chart_image import shapes

if TYPE_CHECKING:
    from openbell.charts.language.construct import Wishes


async def construct_chart_config(call: Call, given: shapes.ConstructInput) -> Result[shapes.ConstructionShape]:
    """Turn a sentence into a config."""
    from openbell.charts.language.construct import construct

    now = datetime.fromtimestamp(call.at, UTC)
    made = await call.desk.threads.run(construct, given.naturalLanguage, now, wishes_of(given))
    missing = await call.desk.chart_images.missing(made.config["symbol"])
    value: shapes.ConstructionShape = {
        "success": True,
        "config": cast("shapes.ConfigShape", made.config),
        "reasoning": made.reasoning,
        "warnings": [*made.warnings, *([missing] if missing else [])],
    }
    return Result(value)


def wishes_of(given: shapes.ConstructInput) -> Wishes:
    """Returns what the arguments ask for beside the sentence. Raises `InvalidParameter`."""
    from openbell.charts.config.ranges import read_range
    from openbell.charts.language.appearance import read_resolution

    asked = given.preferences or shapes.Preferences()
    if asked.theme is not None:
        check_one_of("preferences.theme", asked.theme, THEMES)
    try:
        interval = "" if asked.interval is None else name_of(parse_timeframe(asked.interval, CHART), CHART)
    except InvalidTimeframe as error:
        error.message = f"interval: {error.message}"
        raise
    from openbell.charts.language.construct import Wishes

    size = None
    if asked.resolution is not None and (size := read_resolution(asked.resolution)) is None:
        raise InvalidParameter("preferences.resolution must be two sides such as 1920x1080")
    span = "" if asked.range is None else read_range(asked.range)
    return Wishes(given.symbol or "", given.exchange or "", asked.theme or "", interval, span, size)


async def validate_chart_config(call: Call, given: shapes.ValidateInput) -> Result[shapes.ValidationShape]:
    """Check a config against the fields, the plan and what can be drawn."""
    from openbell.charts.config.validation import plan_of

    plan = call.desk.chart_images.plan if given.planLevel is None else plan_of(given.planLevel)
    found = await call.desk.chart_images.validate(given.config, plan)
    return Result(shaped(shapes.ValidationShape, found, rateLimitCheck=found))


async def generate_chart_image(call: Call, given: shapes.GenerateInput) -> Result[Media]:
    """Draw a config."""
    if given.format is not None:
        check_one_of("format", given.format, FORMATS)
    if given.storage:
        require_scope(Scope.WRITE, "storage", call.session.principal)
    made = await call.desk.chart_images.generate(
        given.config, given.format, store=given.storage, principal=call.principal
    )
    metadata: shapes.MetadataShape = {
        "format": made.format.upper(),
        "resolution": made.resolution,
        "generatedAt": iso(int(made.generated.timestamp())),
        "engine": made.engine,
    }
    if made.expires is not None:
        metadata["expiresAt"] = iso(made.expires.timestamp())
    told = dict(made.stated or {})
    note = "; ".join(filter(None, (f"drawn by {made.engine} from its own data", told.pop("note", None))))
    basis = Basis(stated={"note": note, "data": "remote", "feed": made.engine, **told})
    if told.get("data"):
        metadata["data_source"] = f"{told['data']} data of {made.engine}"
    if made.bars is not None:
        basis = on_bars(made.bars.instrument, made.bars.end, made.bars.facts)
        metadata = {**metadata, **stated(call, made.bars.instrument, made.bars.facts.sources)}
    if made.notes:
        metadata["note"] = "; ".join(made.notes)
    response = shaped(shapes.ResponseShape, made)
    payload: shapes.ImageShape = {"success": True, "metadata": metadata, "apiResponse": response}
    if made.url is not None:
        payload["imageUrl"] = made.url
        return Result(Media((), dict(payload)), basis)
    payload["imageData"] = base64.b64encode(made.data).decode()
    return Result(Media((MediaPicture(f"image/{made.format}", made.data),), dict(payload), repeated=True), basis)


TOOLS = (
    Tool(
        "construct_chart_config",
        "Turn a sentence into a chart config: instrument, range, interval, studies with parameters, style, theme, size, "
        "drawings. reasoning says what was read where, warnings what is ambiguous.",
        shapes.ConstructInput,
        shapes.ConstructionShape,
        construct_chart_config,
        toolset="charts",
        reads=Reads.NOTHING,
    ),
    Tool(
        "validate_chart_config",
        f"Check a chart config and a plan's limits ({', '.join(PLANS)}); suggestions say what would make it pass.",
        shapes.ValidateInput,
        shapes.ValidationShape,
        validate_chart_config,
        toolset="charts",
        reads=Reads.NOTHING,
    ),
    Tool(
        "generate_chart_image",
        "Draw a chart config as PNG or JPEG. With storage the result is a URL that expires: far fewer tokens than Base64.",
        shapes.GenerateInput,
        shapes.ImageShape,
        generate_chart_image,
        toolset="charts",
        reads=Reads.BARS,
        effect=Effect.BY_ARGUMENT,
        open_world=True,
        idempotent=False,
        errors=(VendorError, Refused, DataError, StoreError, InvalidSymbol, UnknownSymbol),
    ),
)
