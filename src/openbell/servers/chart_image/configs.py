"""construct_chart_config and validate_chart_config."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from openbell.charts.config.choices import PLANS, THEMES
from openbell.market.errors import InvalidParameter, InvalidTimeframe
from openbell.market.nearest import check_one_of
from openbell.market.timeframes import CHART, name_of, parse_timeframe
from openbell.protocol.call import Call, Result
from openbell.protocol.tool import Reads, Tool
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
    errors: list[shapes.ProblemShape] = [
        {"field": each.field, "message": each.message, "severity": each.severity} for each in found.problems
    ]
    value: shapes.ValidationShape = {
        "valid": found.valid,
        "errors": errors,
        "suggestions": found.suggestions,
        "rateLimitCheck": {
            "withinLimits": found.within_limits,
            "studyCount": found.studies,
            "maxStudies": plan.parameters,
            "resolution": found.resolution,
            "maxResolution": plan.resolution,
        },
    }
    return Result(value)


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
)
