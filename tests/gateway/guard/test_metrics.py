"""Metrics: the text format, bounded labels, and who may read them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.types import Scope

from openbell.gateway.app import guarded
from openbell.gateway.guard.metrics import BUCKETS, GatewayMetrics, MetricsPage
from tests.gateway.guard.serving import Echo, Served, settings_of

TOOLS = {"chartgen": ("generate_chart", "place_order"), "portfolio": ("get_balance",)}
LINE = re.compile(r'([a-z_]+)(\{[a-z]+="[^"\\\n]*"(,[a-z]+="[^"\\\n]*")*\})? ([0-9.]+(e[+-]?[0-9]+)?)')


def values(metrics: GatewayMetrics) -> dict[str, float]:
    """The samples of the text; every line must be well formed, and every family described once, before its samples."""
    found: dict[str, float] = {}
    described: list[str] = []
    for line in metrics.text().splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            described.append(line.split()[2])
            continue
        match = LINE.fullmatch(line)
        assert match, line
        assert match[1].startswith(described[-1])
        assert line.rpartition(" ")[0] not in found
        found[line.rpartition(" ")[0]] = float(match[4])
    assert len(described) == len(set(described))
    return found


def test_calls_are_counted_by_server_tool_and_outcome() -> None:
    metrics = GatewayMetrics(TOOLS)
    for outcome in ("ok", "ok", "error", "refused"):
        metrics.called("chartgen", "generate_chart", outcome, 0.02)
    metrics.called("portfolio", "get_balance", "ok", 0.5)
    found = values(metrics)
    assert found['openbell_calls_total{server="chartgen",tool="generate_chart",outcome="ok"}'] == 2
    assert found['openbell_calls_total{server="chartgen",tool="generate_chart",outcome="error"}'] == 1
    assert found['openbell_calls_total{server="portfolio",tool="get_balance",outcome="ok"}'] == 1


def test_latencies_are_cumulative_and_bounds_are_inclusive() -> None:
    metrics = GatewayMetrics(TOOLS)
    for seconds in (0.0, 0.001, 0.0011, 0.3, 10.0, 99.0):
        metrics.called("chartgen", "generate_chart", "ok", seconds)
    found = values(metrics)
    counts = [found[f'openbell_call_seconds_bucket{{server="chartgen",le="{bound}"}}'] for bound in (*BUCKETS, "+Inf")]
    assert counts == [2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 5, 6]
    assert found['openbell_call_seconds_count{server="chartgen"}'] == 6
    assert found['openbell_call_seconds_sum{server="chartgen"}'] == pytest.approx(109.3021)


def test_attack_unknown_names_do_not_add_series() -> None:
    metrics = GatewayMetrics(TOOLS)
    for number in range(10_000):
        metrics.called("chartgen", f"tool-{number}", "ok", 0.1)
        metrics.called(f"server-{number}", 'x"} 1\nforged 1', f"-{number}", 0.1)
        metrics.refused(f"reason-{number}")
    found = values(metrics)
    assert len(found) < 50
    assert found['openbell_calls_total{server="chartgen",tool="other",outcome="ok"}'] == 10_000
    assert found['openbell_calls_total{server="other",tool="other",outcome="other"}'] == 10_000
    assert found['openbell_refusals_total{reason="other"}'] == 10_000


def test_streams_memory_and_processor_time() -> None:
    metrics = GatewayMetrics(TOOLS)
    metrics.streams += 3
    found = values(metrics)
    assert found["openbell_open_streams"] == 3
    assert found["process_resident_memory_bytes"] > 10_000_000
    assert found["process_cpu_seconds_total"] > 0


class TestAccess:
    @staticmethod
    async def is_admin(scope: Scope) -> bool:
        return (b"authorization", b"Bearer admin") in scope["headers"]

    def test_this_machine_and_administrators_may_read_them(self, tmp_path: Path) -> None:
        settings = settings_of(tmp_path, public_url="https://desk.example.com", metrics=True)
        metrics = GatewayMetrics(TOOLS)
        page = MetricsPage(metrics, self.is_admin)
        with Served(lambda port: guarded(page, settings, port, metrics.refused), settings) as served:
            answer = served.get("/metrics")
            assert answer.status == 200
            assert answer["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert b"openbell_open_streams 0" in answer.body
            for name in ("localhost", "[::1]"):
                assert served.get("/metrics", host=f"{name}:{served.port}").status == 200
            token = "Authorization: Bearer admin"
            assert served.get("/metrics", token, host="desk.example.com").status == 200
            assert served.get("/metrics", "X-Forwarded-For: 203.0.113.5", token).status == 200

            # Requests that a proxy on this machine passes on also come from 127.0.0.1.
            for headers, host in (
                (("X-Forwarded-For: 203.0.113.5",), None),
                (("X-Forwarded-For: 127.0.0.1",), None),
                (("X-Forwarded-Proto: https",), None),
                (("Forwarded: for=203.0.113.5",), None),
                (("Via: 1.1 proxy",), None),
                (("X-Real-IP: 127.0.0.1",), None),
                ((), "desk.example.com"),
                # Pages of other origins that a browser on this machine shows.
                (("Sec-Fetch-Site: cross-site",), None),
                (("Sec-Fetch-Site: same-site",), None),
            ):
                assert served.get("/metrics", *headers, host=host).status == 403

    def test_refusals_of_the_guard_are_counted(self, tmp_path: Path) -> None:
        settings = settings_of(tmp_path, body_limit=1024)
        metrics = GatewayMetrics(TOOLS)
        with Served(lambda port: guarded(Echo(), settings, port, metrics.refused), settings) as served:
            for _ in range(2):
                served.get(host="evil.example")
            served.get("/mcp", "Origin: null")
            served.get("//mcp")
            served.post(b"a" * 2000)
            both = f"POST / HTTP/1.1\r\nHost: {served.host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
            served.send(both.encode())
        found = values(metrics)
        refusals = {name.split('"')[1]: count for name, count in found.items() if "refusals" in name}
        assert refusals == {
            "host_not_allowed": 2,
            "origin_not_allowed": 1,
            "bad_target": 1,
            "body_too_large": 1,
            "bad_length": 1,
        }
