"""chart-image: chart configs from sentences, validated, and drawn by this desk or by chart-img.com."""

from __future__ import annotations

from openbell.protocol.dialects import ChartImageDialect
from openbell.protocol.service import Service
from openbell.servers.chart_image import configs, exploring

SERVICE = Service(
    name="chart-image",
    title="Openbell chart images",
    instructions=(
        "construct_chart_config turns a sentence into a config, generate_chart_image draws it; validate_chart_config checks "
        "a config that you changed. metadata.engine says who drew: openbell (this desk's bars) or chart-img.com."
    ),
    tools=(*exploring.TOOLS, *configs.TOOLS),
    dialect=ChartImageDialect(),
)
