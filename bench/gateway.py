"""The gateway as clients meet it: `openbell up` with its guard, tokens and audit log, beside hello-world servers over HTTP.

Clients are a process of their own. Rounds of ours and of a rival alternate, and a row shows the median of the ratios of
neighbouring rounds, so that other work on the machine slows both.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gateway_home import Home
from measure import row

HERE = Path(__file__).resolve().parent
RIVAL = HERE.parent / ".fastmcp-venv"
OURS = [sys.executable, "-m", "openbell.cli.entry", "up", "--trade", "--watch", "AAPL"]
LOOP = "asyncio" if sys.platform == "win32" else "uvloop"
CLIENTS, ROUNDS, SECONDS = 50, 9, 1.5
PRINCIPALS = 50
STREAMS = 1_000
PATIENCE = 60.0
PRICE = {"tool": "get_current_price", "arguments": {"symbol": "AAPL"}, "path": "/market-data/mcp"}
WAIT = {"tool": "get_notifications", "arguments": {"wait_s": 1.0}, "path": "/mcp"}
HELLO = {"tool": "hello", "path": "/mcp"}
NO_RATES = {f"OPENBELL_RATE_{kind}": "0" for kind in ("READ", "WRITE", "TRADE", "ADMIN", "SIGNIN")}
NO_LIMITS = {**NO_RATES, "OPENBELL_MAX_REQUESTS": "100000", "OPENBELL_MAX_REQUESTS_EACH": "100000"}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    """A server on a free port. Use as a context manager."""

    def __init__(self, *command: str, **variables: str) -> None:
        self.port = free_port()
        words = [each.replace("PORT", str(self.port)) for each in command]
        null = subprocess.DEVNULL
        self.process = subprocess.Popen(
            words,
            stdin=null,
            stdout=null,
            stderr=null,
            env={**os.environ, **variables},
        )

    def __enter__(self) -> Server:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{self.process.args!r} does not start") from None
                time.sleep(0.05)
            else:
                return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Clients:
    """The process of the clients. Use as a context manager."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, str(HERE / "http_load.py")]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Clients:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def tell(self, **given: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()

    def heard(self) -> dict[str, Any]:
        assert self._process.stdout
        found: dict[str, Any] = json.loads(self._process.stdout.readline() or '{"faults": {"the clients ended": 1}}')
        return found

    def round(self, **given: Any) -> dict[str, Any]:
        self.tell(**given)
        return self.heard()


@contextmanager
def gateway(home: Home, **variables: str) -> Iterator[Server]:
    words = (*OURS, "--port", "PORT")
    with Server(*words, **home.variables(**variables)) as server:
        yield server


def rival() -> tuple[list[str], str]:
    """The command that runs fastmcp, and its version. Its environment is made at the first call; empty if that fails."""
    python = RIVAL / "bin" / "python"
    stamp = RIVAL / "installed"
    if not stamp.exists():
        print("making .fastmcp-venv …", file=sys.stderr)
        packages = ["fastmcp", *(["uvloop"] if LOOP == "uvloop" else [])]
        install = [sys.executable, str(HERE.parent / ".ci" / "install.py"), "--new", str(RIVAL), *packages]
        if subprocess.run(install, stdout=sys.stderr, check=False).returncode:
            return [], ""
        version = "import importlib.metadata as m; print(m.version('fastmcp'))"
        stamp.write_text(
            subprocess.run([str(python), "-c", version], check=True, capture_output=True, text=True).stdout
        )
    return [str(python), str(HERE / "fastmcp_http.py"), "PORT", LOOP], stamp.read_text().strip()


def faults(*results: dict[str, Any]) -> str:
    """What went wrong in some rounds: empty if every request was answered with 200."""
    found = [f"{name} ({count})" for each in results for name, count in each["faults"].items()]
    found += [f"{name} ({count})" for each in results for name, count in each["statuses"].items() if "200" not in name]
    return "; ".join(found)


def speed(home: Home, clients: Clients) -> None:
    """Calls/s of a cheap tool through the whole gateway, beside hello-worlds, in both eras."""
    command, version = rival()
    rivals = [("the SDK's hello-world", [sys.executable, str(HERE / "hello_http.py"), "PORT", LOOP], 1.0)]
    if command:
        rivals.append((f"fastmcp {version}'s", command, 2.5))
    with gateway(home, **NO_LIMITS) as ours:
        mine = {**PRICE, "port": ours.port, "tokens": home.tokens[:1], "clients": CLIENTS}
        wait_until_idle(ours)
        for what, words, target in rivals:
            with Server(*words) as theirs:
                other = {**HELLO, "port": theirs.port, "clients": CLIENTS}
                for era in ("modern", "handshake"):
                    compare(clients, f"{era}: calls/s / {what}", (ours, mine), (theirs, other), era, target)


def wait_until_idle(server: Server) -> None:
    """A desk that has just started tries strategies, which is no part of a call."""
    deadline = time.monotonic() + PATIENCE
    spent = 1.0
    while spent > 0.05 and time.monotonic() < deadline:
        before = server.processor_seconds()
        time.sleep(2.0)
        spent = server.processor_seconds() - before


def compare(
    clients: Clients, what: str, ours: tuple[Server, Any], theirs: tuple[Server, Any], era: str, target: float
) -> None:
    rates: list[tuple[float, float]] = []
    costs: list[tuple[float, float]] = []
    wrong = ""
    for turn in range(ROUNDS + 1):
        both, spent = [], []
        for server, given in (ours, theirs):
            before = server.processor_seconds()
            found = clients.round(**given, era=era, seconds=SECONDS if turn else 0.5)
            spent.append((server.processor_seconds() - before) / max(1, found["statuses"].get("200", 0)))
            both.append(found["statuses"].get("200", 0) / found["seconds"])
            wrong = wrong or faults(found)
        if turn:  # the first round warms both up
            rates.append((both[0], both[1]))
            costs.append((spent[0], spent[1]))
    ratio = statistics.median(mine / other for mine, other in rates)
    cost = statistics.median(other / mine for mine, other in costs)
    mine, other = (statistics.median(each) for each in zip(*rates, strict=True))
    row(what, f"{ratio:.2f} × ({mine:,.0f} / {other:,.0f})", f"≥ {target} ×, none lost", ratio >= target and not wrong)
    mine, other = (statistics.median(each) * 1e6 for each in zip(*costs, strict=True))
    row("  the same, processor time of a call", f"{cost:.2f} × ({mine:.0f} / {other:.0f} µs)", "(none)", True)
    if wrong:
        print(f"      {wrong[:300]}")


def fan_out(home: Home, clients: Clients) -> None:
    """Alerts that another process commits, until the last of many streams has its event."""
    with gateway(home, **NO_LIMITS) as ours:
        for what, count in (("one principal", 1), (f"{PRINCIPALS} principals", PRINCIPALS)):
            turns = [home.alerts(count) for _ in range(5)]
            found = clients.round(
                streams=True, clients=STREAMS, port=ours.port, path="/mcp", tokens=home.tokens[:count]
            )
            wrong, spent = faults(found), [0.0] * 0
            for alerts in turns:
                committed = home.fire(alerts)
                found = clients.round(events=STREAMS)
                wrong = wrong or "; ".join(found["faults"])
                spent.append(found["last"] - committed)
            clients.round()
            figure = f"{max(spent) * 1000:.0f} ms (median {statistics.median(spent) * 1000:.0f})"
            row(f"alert to {STREAMS:,} streams of {what}, slowest of 5", figure, "≤ 1 s", max(spent) <= 1 and not wrong)
            if wrong:
                print(f"      {wrong[:300]}")


def crowd(home: Home, clients: Clients) -> None:
    """300 clients at once, with the limits that are set by default: each request is answered, or refused in a typed way."""
    for what, call, tokens, variables in (
        ("of one principal", PRICE, home.tokens[:1], {}),
        ("of 10 principals, calls of 1 s", WAIT, home.tokens[:10], NO_RATES),
    ):
        with gateway(home, **variables) as ours:
            found = clients.round(**call, port=ours.port, tokens=tokens, clients=300, era="modern", seconds=5.0)
        statuses = {int(name): count for name, count in found["statuses"].items()}
        met = not found["faults"] and statuses.keys() <= {200, 429, 503} and statuses.get(200, 0) > 0
        figure = ", ".join(f"{count:,} × {name}" for name, count in sorted(statuses.items()))
        row(f"300 clients {what}", figure, "200, 429, 503 only", met)
        if found["faults"]:
            print(f"      {found['faults']}")


def memory(home: Home, clients: Clients) -> None:
    """Resident memory: what grows with each call, session or stream would show."""
    with gateway(home, **NO_LIMITS) as ours:
        base = {"port": ours.port, "tokens": home.tokens[:1]}

        def call(count: int) -> dict[str, Any]:
            return clients.round(**PRICE, **base, clients=CLIENTS, era="modern", calls=count)

        def sessions(count: int) -> dict[str, Any]:
            rounds = [clients.round(**PRICE, **base, clients=500, calls=0) for _ in range(count // 500)]
            return {"faults": {}, "statuses": {}} if not any(map(faults, rounds)) else rounds[-1]

        def streams(count: int) -> dict[str, Any]:
            rounds = []
            for _ in range(count // 200):
                rounds.append(clients.round(streams=True, path="/mcp", **base, clients=200))
                clients.round()
            return {"faults": {}, "statuses": {}} if not any(map(faults, rounds)) else rounds[-1]

        for what, work, first, last in (
            ("calls", call, 10_000, 100_000),
            ("sessions, opened and abandoned", sessions, 2_000, 10_000),
            ("streams, opened and closed", streams, 400, 2_000),
        ):
            wrong = faults(work(first))
            before = settled(ours)
            wrong = wrong or faults(work(last - first))
            after = ours.memory_mb()
            figure = f"{after - before:+.1f} MB ({before:.0f} → {after:.0f})"
            row(f"memory, {first:,} → {last:,} {what}", figure, "≤ +5 MB", after - before <= 5 and not wrong)
            if wrong:
                print(f"      {wrong[:300]}")


def settled(server: Server) -> float:
    """Memory once it has been level for 20 s: a desk that has just started loads strategies and bars, called or not."""
    found = [server.memory_mb()]
    deadline = time.monotonic() + 2 * PATIENCE
    while (len(found) < 5 or max(found[-5:]) - min(found[-5:]) > 0.5) and time.monotonic() < deadline:
        time.sleep(5.0)
        found.append(server.memory_mb())
    return found[-1]


def main() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < 2 * STREAMS:
        print(f"the limit of open files is {hard:,}: {STREAMS:,} streams may fail", file=sys.stderr)
    parts = {each.__name__: each for each in (speed, fan_out, crowd, memory)}
    with TemporaryDirectory() as folder, Clients() as clients:
        home = Home(Path(folder), PRINCIPALS)
        for name in sys.argv[1:] or parts:
            parts[name](home, clients)
    return 0


if __name__ == "__main__":
    sys.exit(main())
