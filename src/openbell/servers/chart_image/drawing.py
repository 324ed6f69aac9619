"""generate_chart_image."""

from __future__ import annotations

import base64

from openbell.charts.config.choices import FORMATS
from openbell.desk.pictures.chart_image.errors import VendorError
from openbell.market.clock import iso
from openbell.market.errors import DataError, InvalidSymbol, Refused, StoreError, UnknownSymbol
from openbell.market.nearest import check_one_of
from openbell.protocol.access import require
from openbell.protocol.call import Basis, Call, Result, on_bars
from openbell.protocol.media import Media, MediaPicture
from openbell.protocol.session import Scope
from openbell.protocol.source_fields import stated
from openbell.protocol.tool import Effect, Reads, Tool
from openbell.servers.chart_image import shapes


async def generate_chart_image(call: Call, given: shapes.GenerateInput) -> Result[Media]:
    """Draw a config."""
    if given.format is not None:
        check_one_of("format", given.format, FORMATS)
    if given.storage:
        require(Scope.WRITE, "storage", call.session.principal)
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
    response: shapes.ResponseShape = {"statusCode": made.status}
    if made.remaining is not None:
        response["rateLimitRemaining"] = made.remaining
    payload: shapes.ImageShape = {"success": True, "metadata": metadata, "apiResponse": response}
    if made.url is not None:
        payload["imageUrl"] = made.url
        return Result(Media((), dict(payload)), basis)
    payload["imageData"] = base64.b64encode(made.data).decode()
    return Result(Media((MediaPicture(f"image/{made.format}", made.data),), dict(payload), repeated=True), basis)


TOOLS = (
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
