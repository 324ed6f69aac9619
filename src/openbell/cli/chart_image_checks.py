"""The check of `openbell doctor` that concerns chart images: who draws them, and how much is stored."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

from openbell.cli.findings import Finding
from openbell.desk.chart_image.errors import KEY_VARIABLE
from openbell.desk.chart_image.pictures import FOLDER
from openbell.desk.desk import Desk

_NEARLY_FULL = 0.9


def check_chart_images(desk: Desk) -> Iterator[Finding]:
    """Name the engine, and warn before the store of pictures is full. Contacts nobody."""
    settings = desk.settings
    if not os.environ.get(KEY_VARIABLE, "").strip():
        yield Finding("ok", f"chart images are drawn by this desk; with {KEY_VARIABLE} the vendor draws them")
    elif settings.other_clock:
        yield Finding("ok", "chart images are drawn by this desk, because the vendor draws as of now")
    else:
        host = urlsplit(settings.chart_img_url).hostname
        yield Finding("ok", f"chart images are drawn by {host} within the plan {settings.chart_img_plan.upper()}")
    folder = settings.home / FOLDER
    used = sum(path.stat().st_size for path in folder.iterdir()) / 2**20 if folder.is_dir() else 0.0
    if used > _NEARLY_FULL * settings.chart_images_mb:
        yield Finding(
            "note",
            f"stored chart images take {used:.0f} of {settings.chart_images_mb} MB",
            f"set OPENBELL_CHART_IMAGES_MB, or remove files from {folder}",
        )
