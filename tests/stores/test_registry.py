"""Kinds of store are found as packages, and chosen by the settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import openbell
from openbell import stores
from openbell.desk.desk import Desk
from openbell.desk.settings import Settings
from openbell.stores.overlay import OverlayStore
from openbell.stores.registry import StoreBackend, StoreSelection, all_backends, backend_of

SOURCE = Path(openbell.__file__).parent
NEW = '''
"""A store that only this test has."""

from openbell.stores.registry import StoreBackend


class STORE(StoreBackend):
    title, place, folders, is_remote = "Tapes", ("influx_database",), "tapes", True

    @property
    def folder(self):
        return self._selected.market / "tapes"

    def open(self):
        from openbell.stores.parquet.store import ParquetStore

        return ParquetStore(self.folder, self.origins)

    view = open
'''


@pytest.fixture
def new_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Adds a package to the folder of stores while a test runs."""
    package = tmp_path / "more" / "tapes"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(NEW)
    monkeypatch.setattr(stores, "__path__", [*stores.__path__, str(package.parent)])
    all_backends.cache_clear()
    yield
    all_backends.cache_clear()


def selected(home: Path, **settings: object) -> StoreBackend:
    """Returns the backend that some settings select."""
    given = {"home": home, "influx_url": "", "influx_database": "", "sim_seed": 7, **settings}
    return backend_of(StoreSelection(given, home, simulated=False, shared=False))


def test_the_settings_select_the_store_and_its_folder(tmp_path: Path) -> None:
    files = selected(tmp_path)
    assert (files.title, files.folder, files.has_bars) == ("Parquet files", tmp_path / "data", False)
    database = selected(tmp_path, influx_url="http://127.0.0.1:8086/", influx_database="bars")
    assert (database.title, database.folder.parent, database.has_bars) == ("InfluxDB", tmp_path / "influx", True)
    assert database.folder == selected(tmp_path, influx_url="http://127.0.0.1:8086", influx_database="bars").folder
    assert database.folder != selected(tmp_path, influx_url="http://127.0.0.1:8086", influx_database="others").folder


@pytest.mark.usefixtures("new_package")
def test_a_new_package_is_a_store_that_the_desk_opens_and_views(tmp_path: Path) -> None:
    assert [each.title for each in all_backends()] == ["Parquet files", "InfluxDB", "Tapes"]
    settings = Settings(home=tmp_path / "home", feed="none", influx_database="drum")
    desk = Desk(settings)
    assert desk.store.where() == str(settings.home / "tapes")
    desk.store.close()
    viewing = Desk(replace(settings, read_only=True))
    assert isinstance(viewing.store, OverlayStore)
    viewing.store.close()


def test_only_its_package_and_the_settings_name_a_database() -> None:
    """A name of a module, setting or function; texts for users may name it."""
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if not path.is_relative_to(SOURCE / "stores" / "influx")
        for node in ast.walk(ast.parse(path.read_text()))
        for field in ("id", "attr", "name", "arg", "module")
        if "influx" in str(getattr(node, field, "")).lower()
    }
    assert found == {"desk/settings/settings.py"}
