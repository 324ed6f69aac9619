"""chartgen: charts as pictures or numbers, the indicator catalogue, orders and alerts."""

from __future__ import annotations

from openbell.protocol.dialects import TextDialect
from openbell.protocol.service import Service
from openbell.protocol.session import Scope
from openbell.servers.chartgen import alerts, charting, orders
from openbell.signals.crossing_alerts import METHOD as SIGNALS
from openbell.trading.alerts import ALERT_TRIGGERED as ALERTS

SERVICE = Service(
    name="chartgen",
    title="Openbell charts",
    instructions=(
        "generate_chart draws closed bars (format=summary is the cheapest to read); list_indicators names what can be "
        "drawn; get_indicators gives last values. Orders and alerts need --trade; triggered alerts are in get_notifications."
    ),
    tools=(*charting.TOOLS, *orders.TOOLS, *alerts.TOOLS),
    dialect=TextDialect(),
    pushes={ALERTS: Scope.TRADE, SIGNALS: Scope.READ},
)
