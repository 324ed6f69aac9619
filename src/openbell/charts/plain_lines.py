"""Lines that a chart draws like an indicator, although no indicator of the registry computed them."""

from __future__ import annotations

from openbell.indicators.channels import Channels
from openbell.indicators.evaluation import Computed, IndicatorRequest
from openbell.indicators.spec import Indicator


def plain(title: str, channels: Channels, *, overlay: bool, name: str = "") -> Computed:
    """Returns channels under a title. They are drawn as the indicator `name` is; by default as lines."""
    indicator = Indicator(
        name=name or title, title=title, description="", overlay=overlay, compute=lambda: channels, warmup=lambda: 1
    )
    return Computed(IndicatorRequest(title, indicator, {}), channels)
