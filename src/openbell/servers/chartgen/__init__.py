"""chartgen: charts as pictures or numbers, and the indicator catalogue."""

from __future__ import annotations

from openbell.protocol.dialects import TextDialect
from openbell.protocol.service import Service
from openbell.servers.chartgen import charting

SERVICE = Service(
    name="chartgen",
    title="Openbell charts",
    instructions=(
        "generate_chart draws closed bars (format=summary is the cheapest to read); list_indicators names what can be "
        "drawn; get_indicators gives last values."
    ),
    tools=charting.TOOLS,
    dialect=TextDialect(),
)
