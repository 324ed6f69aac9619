"""The server chart-image over MCP on stdio: mistakes, stored pictures, other clocks and simulated data."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest

from openbell.charts.compose import compose
from openbell.charts.config.looks import look_of, options_of
from openbell.charts.config.plots import requests_of
from openbell.charts.config.reading import read_config
from openbell.charts.picture import picture
from openbell.charts.scene import Label, Scene
from openbell.charts.studies.catalogue import all_studies
from openbell.desk.pictures.chart_image.own_engine import title_of, window_of
from openbell.desk.pictures.chart_image.pictures import expiry_of
from openbell.desk.pictures.chart_image.service import NOT_SERVED
from openbell.desk.pictures.indicators import warm_up
from openbell.market.timeframes import CHART
from tests.gateway.streamable.gateways import Inside
from tests.servers.chart_image_servers import AS_OF, BITCOIN, ChartImage, chart_image, opened
from tests.servers.chart_img_server import KEY, ChartImgServer
from tests.servers.desks import awaited, bench_as_found

LATER = "2026-01-09T18:00:00Z"
_CREATED, _RENAMED = 0x100, 0x80
"""IN_CREATE and IN_MOVED_TO of inotify."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChartImage]:
    """A server without a key, at a fixed time."""
    with chart_image(tmp_path_factory.mktemp("desk"), AS_OF=AS_OF) as made:
        yield made


@pytest.fixture(scope="module")
def _vendor() -> Iterator[ChartImgServer]:
    with ChartImgServer() as made:
        yield made


@pytest.fixture
def vendor(_vendor: ChartImgServer) -> ChartImgServer:
    """The double of the vendor."""
    _vendor.reset()
    return _vendor


@pytest.fixture(scope="module")
def remote(_vendor: ChartImgServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChartImage]:
    """A server with a key of the double."""
    home = tmp_path_factory.mktemp("remote")
    with chart_image(home, key=KEY, CHART_IMG_URL=_vendor.url, CHART_IMG_PLAN="ULTRA") as made:
        yield made


# Mistakes and studies


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("generate_chart_image", {}),
        ("generate_chart_image", {"config": []}),
        ("generate_chart_image", {"config": BITCOIN, "format": "gif"}),
        ("generate_chart_image", {"config": {**BITCOIN, "symbol": "NASDAQ:NOPE"}}),
        ("generate_chart_image", {"config": {**BITCOIN, "range": "2031-01-01/2031-02-01"}}),
        ("validate_chart_config", {"config": {}, "planLevel": "GOLD"}),
        ("construct_chart_config", {"naturalLanguage": "show me something"}),
        ("construct_chart_config", {"naturalLanguage": "BTC", "preferences": {"resolution": "large"}}),
        ("get_symbols", {"exchange": "NOPE"}),
        ("get_symbols", {"exchange": "BINANCE", "limit": 0}),
        ("fetch_chart_documentation", {"section": "everything"}),
    ],
)
def test_every_mistake_is_an_error_object(desk: ChartImage, tool: str, arguments: dict[str, Any]) -> None:
    assert "Internal" not in desk.refused(tool, **arguments)["error"]


def test_a_number_that_no_float_can_hold_is_a_problem_of_its_field(desk: ChartImage) -> None:
    for name in ("watermarkSize", "watermarkOpacity", "width", "shiftLeft"):
        found = desk.ask("validate_chart_config", config={**BITCOIN, name: 10**400})
        assert [each["field"] for each in found["errors"] if each["severity"] == "error"] == [name]


def test_all_studies_of_the_vendor_are_drawn(desk: ChartImage) -> None:
    """Each study alone on the picture, by the name that the documentation has."""
    listed = desk.ask("fetch_chart_documentation", section="indicators", full=True)["data"]["indicators"]
    assert len(listed) == len(all_studies()) == 93
    bare = desk.picture(config=BITCOIN)
    for each in listed:
        assert desk.picture(config={**BITCOIN, "studies": [{"name": each["name"]}]}) != bare, each["name"]


# Stored pictures


def test_a_stored_picture_is_in_the_home_and_served_until_its_time(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    with Inside(tmp_path, AS_OF=AS_OF) as gateway, chart_image(tmp_path, AS_OF=AS_OF) as server:
        found = server.ask("generate_chart_image", config=BITCOIN, storage=True, format="png")
        assert set(found) == {"success", "imageUrl", "metadata", "apiResponse"}
        assert "note" not in found["metadata"]
        address, _, name = found["imageUrl"].rpartition("/storage/")
        assert address == f"http://{gateway.host}"
        (file,) = folder.glob("*/*.png")
        assert (file.name, stat.S_IMODE(file.stat().st_mode)) == (name, 0o600)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        expires = datetime.fromisoformat(found["metadata"]["expiresAt"])
        assert expires.timestamp() == expiry_of(name)
        assert abs(expires - datetime.now(UTC) - timedelta(days=120)) < timedelta(minutes=5)
        served = gateway.request("GET", f"/storage/{name}", who=None)
        assert (served.status, served["content-type"], served.body) == (200, "image/png", file.read_bytes())
        assert served.body == server.picture(config=BITCOIN)
        # The same file under names of other times: the name decides.
        now = int(time.time())
        for seconds, status in ((-1, 404), (600, 200)):
            other = f"{now + seconds:010x}{name[10:]}"
            file = file.rename(file.with_name(other))
            assert gateway.request("GET", f"/storage/{other}", who=None).status == status


def test_expired_and_interrupted_files_are_removed_and_new_ones_of_other_writers_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "pictures" / ("0" * 32)
    folder.mkdir(mode=0o700, parents=True)
    later, past = (f"{int(time.time()) + seconds:010x}" for seconds in (600, -600))
    names = {
        "expired": f"{past}-{'0' * 32}.png",
        "interrupted": f"{later}-{'1' * 32}.png.part",
        "being written": f"{later}-{'2' * 32}.png.part",
        "kept": f"{later}-{'3' * 32}.jpeg",
        "a note of the owner": "notes.txt",
    }
    for name in names.values():
        (folder / name).write_bytes(b"x")
    os.utime(folder / names["interrupted"], (0, 0))
    with chart_image(tmp_path, AS_OF=AS_OF) as server:
        found = server.ask("generate_chart_image", config=BITCOIN, storage=True)
    assert found["metadata"]["note"] == NOT_SERVED
    left = {each.name for each in folder.iterdir()}
    new = [each.name for each in folder.parent.glob("*/*") if each.parent != folder]
    assert new == [found["imageUrl"].rpartition("/")[2]]
    assert left == {names["being written"], names["kept"], names["a note of the owner"]}


def test_read_only_refuses_storage_and_draws(tmp_path: Path) -> None:
    with chart_image(tmp_path, "--read-only", AS_OF=AS_OF) as server:
        assert "--read-only" in server.refused("generate_chart_image", config=BITCOIN, storage=True)["error"]
        assert opened(server.picture(config=BITCOIN)).size == (400, 300)
    assert not (tmp_path / "pictures").exists()


def test_a_full_store_is_said_and_pictures_are_still_drawn(tmp_path: Path) -> None:
    folder = tmp_path / "pictures" / ("0" * 32)
    folder.mkdir(mode=0o700, parents=True)
    (folder / f"{int(time.time()) + 600:010x}-{'0' * 32}.png").write_bytes(bytes(2**20 - 100))
    with chart_image(tmp_path, AS_OF=AS_OF, CHART_IMAGES_MB="1") as server:
        error = server.refused("generate_chart_image", config=BITCOIN, storage=True)["error"]
        assert "OPENBELL_CHART_IMAGES_MB" in error
        assert opened(server.picture(config=BITCOIN)).size == (400, 300)
    assert len(list((tmp_path / "pictures").rglob("*.*g"))) == 1


class Arrivals:
    """How files come into a folder, as Linux tells it. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK)
        assert libc.inotify_add_watch(self._fd, os.fsencode(folder), _CREATED | _RENAMED) >= 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def names(self, kind: int) -> set[str]:
        """Returns the files that were created or renamed, of at most some hundred events. Call it once."""
        found, events = set(), os.read(self._fd, 65_536)
        while events:
            _, mask, _, length = struct.unpack_from("iIII", events)
            if mask & kind:
                found.add(events[16 : 16 + length].rstrip(b"\0").decode())
            events = events[16 + length :]
        return found


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: only Linux tells how files arrive")
def test_a_picture_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    """So that a process that is killed at any moment leaves no broken picture."""
    with chart_image(tmp_path, AS_OF=AS_OF) as server:
        server.ask("generate_chart_image", config=BITCOIN, storage=True)
        (own,) = (each for each in (tmp_path / "pictures").iterdir() if each.is_dir())
        with Arrivals(own) as arrivals:
            name = server.ask("generate_chart_image", config=BITCOIN, storage=True)["imageUrl"].rpartition("/")[2]
            assert name not in arrivals.names(_CREATED)
    assert opened((own / name).read_bytes()).size == (400, 300)


def test_two_processes_store_at_once_and_killing_them_leaves_no_broken_picture(disk_path: Path) -> None:
    number, urls = 12, list[str]()
    _store_and_kill(disk_path, number, urls)
    names = {url.rpartition("/")[2] for url in urls}
    assert len(names) == len(urls) == 2 * (number + 5 + 1)
    files = list((disk_path / "pictures").glob("*/*.png"))
    assert names <= {each.name for each in files}
    for each in files:
        assert opened(each.read_bytes()).size == (400, 300)


def _store_and_kill(home: Path, number: int, urls: list[str]) -> None:
    """Lets two processes store pictures at once, and kills both after some of them, three times."""
    for kill_after in (number, 5, 1):
        with chart_image(home, AS_OF=AS_OF) as one, chart_image(home, AS_OF=AS_OF) as other:
            for at in range(number):
                for server in (one, other):
                    arguments = {"config": {**BITCOIN, "watermark": f"{at}"}, "storage": True}
                    call = {"name": "generate_chart_image", "arguments": arguments}
                    server.send({"jsonrpc": "2.0", "id": f"s{at}", "method": "tools/call", "params": call})
            for server in (one, other):
                for _ in range(kill_after):
                    found = server.receive()["result"]["structuredContent"]
                    assert found["success"], found
                    urls.append(found["imageUrl"])
            one.process.kill()
            other.process.kill()


# Another clock


def test_a_picture_of_an_earlier_time_shows_nothing_later(desk: ChartImage, tmp_path: Path) -> None:
    asked = [
        {**BITCOIN, "studies": [{"name": "RSI@tv-basicstudies"}, {"name": "IchimokuCloud@tv-basicstudies"}]},
        {**BITCOIN, "range": "2026-01-02/2026-01-31"},
        {**BITCOIN, "interval": "1D", "range": "1M", "symbol": "NASDAQ:AAPL"},
        {**BITCOIN, "interval": "5m", "range": "DTD", "studies": [{"name": "VolumeProfileVisibleRange"}]},
    ]
    with chart_image(tmp_path, AS_OF=AS_OF) as server:
        before = [server.picture(config=config) for config in asked]
    with chart_image(tmp_path, AS_OF=LATER) as server:
        later = [server.picture(config=config) for config in asked]
    with chart_image(tmp_path, AS_OF=AS_OF) as server:
        after = [server.picture(config=config) for config in asked]
    assert before == after == [desk.picture(config=config) for config in asked]
    assert all(one != other for one, other in zip(before, later, strict=True))


def test_with_a_key_an_earlier_time_is_drawn_here_and_that_is_said(vendor: ChartImgServer, tmp_path: Path) -> None:
    settings = {"AS_OF": AS_OF, "CHART_IMG_URL": vendor.url, "CHART_IMG_PLAN": "BASIC"}
    with chart_image(tmp_path, key=KEY, **settings) as server:
        large = {**BITCOIN, "width": 1920, "height": 1080}
        assert server.ask("validate_chart_config", config=large)["valid"], (
            "the limits of the key's plan do not hold here"
        )
        found = server.ask("generate_chart_image", config=BITCOIN)
    assert found["metadata"]["engine"] == "openbell"
    assert found["metadata"]["note"] == "drawn here, because chart-img.com draws as of now"
    assert vendor.asked == []


def test_the_vendor_is_named_when_it_draws(remote: ChartImage, vendor: ChartImgServer) -> None:
    answer = remote.call("generate_chart_image", {"config": BITCOIN, "format": "jpeg"})["result"]
    found = answer["structuredContent"]
    assert (found["metadata"]["engine"], found["metadata"]["format"]) == (vendor.url.partition("//")[2], "JPEG")
    assert "data_source" not in found["metadata"]
    assert found["apiResponse"]["rateLimitRemaining"] >= 0
    assert answer["_meta"]["openbell/truth"]["data"] == "remote"
    assert vendor.asked[-1].json["format"] == "jpeg"


# Simulated data


@awaited
async def test_simulated_bars_have_a_badge_in_the_picture_and_a_name_in_the_metadata(tmp_path: Path) -> None:
    config = read_config(BITCOIN).config
    assert config is not None
    with chart_image(tmp_path, AS_OF=AS_OF) as server:
        found = server.ask("generate_chart_image", config=BITCOIN)
        sent = server.picture(config=BITCOIN)
    assert "simulated" in found["metadata"]["data_source"]
    async with bench_as_found(tmp_path, AS_OF, FEED="sim") as bench:
        instrument = await bench.desk.bars.find(config.symbol)
        plots, timeframe = requests_of(config), CHART[config.interval]
        requests = [each.request for each in plots]
        window = await window_of(bench.desk.bars, config, instrument, timeframe, warm_up(requests, timeframe))
        shown = await bench.desk.indicators.evaluate_bars(window.bars, window.count, requests)
    look = look_of(config)

    def scene(badge: str) -> Scene:
        title = title_of(shown.bars, config)
        options = options_of(config)
        return compose(shown.bars, shown.indicators, look, title, badge, shown.whole, options=options, plots=plots)

    items = [item for layer in scene("SIMULATED").layers for item in layer.items]
    assert "SIMULATED" in {each.text for each in items if isinstance(each, Label)}
    assert sent == picture(scene("SIMULATED"), look.scale, "png")
    assert sent != picture(scene(""), look.scale, "png")
