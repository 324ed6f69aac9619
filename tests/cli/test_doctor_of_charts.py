"""`openbell doctor` about chart images: who draws them, and whether the store is nearly full. The key stays secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from openbell.cli.findings import Finding
from openbell.cli.service_checks import check_chart_images
from openbell.desk.desk import Desk
from openbell.desk.pictures.chart_image.errors import KEY_VARIABLE
from openbell.desk.pictures.chart_image.pictures import FOLDER
from openbell.desk.settings import load

AS_OF = "2026-01-07T15:00:00Z"


def findings(home: Path, **settings: str) -> list[Finding]:
    named = {f"OPENBELL_{name}": value for name, value in settings.items()}
    return list(check_chart_images(Desk(load({"OPENBELL_HOME": str(home), **named}))))


def test_it_names_the_engine_and_never_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert "by this desk" in findings(tmp_path)[0].text
    monkeypatch.setenv(KEY_VARIABLE, "secret-of-the-vendor")
    assert findings(tmp_path, CHART_IMG_PLAN="pro")[0].text.endswith("api.chart-img.com within the plan PRO")
    assert "by this desk" in findings(tmp_path, AS_OF=AS_OF)[0].text
    assert not any("secret" in str(each) for each in findings(tmp_path))


def test_it_warns_before_the_store_is_full(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "one.png").write_bytes(bytes(1_000_000))
    assert len(findings(tmp_path)) == 1
    warning = findings(tmp_path, CHART_IMAGES_MB="1")[1]
    assert warning.state == "note"
    assert "OPENBELL_CHART_IMAGES_MB" in warning.mend
