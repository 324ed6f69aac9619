"""A real Chromium without a window, installed from Debian's packages into the project's cache if the machine has none.

It is driven through its DevTools protocol; a test sees a page as a person does, and types and clicks as one.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "chromium"
PATIENCE = 30.0
_PACKAGE = "chromium-headless-shell"
_NAMES = (_PACKAGE, "chromium", "chromium-browser", "google-chrome")
_DONE = CACHE / "installed"


class NotHere(Exception):
    """There is no Chromium on this machine and none can be installed."""


def program() -> tuple[Path, dict[str, str]]:
    """The program, and the variables that it needs."""
    for name in _NAMES:
        if found := shutil.which(name):
            return Path(found), {}
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _DONE.exists():
            _install()
            _DONE.touch()
    libraries = {path.parent for path in (CACHE / "root" / "usr" / "lib").rglob("*.so*")}
    return CACHE / "root" / "usr" / "lib" / "chromium" / _PACKAGE, {"LD_LIBRARY_PATH": ":".join(map(str, libraries))}


def _install() -> None:
    """Unpack Debian's packages without installing them, which needs no special rights. 86 MB, once."""
    print(f"fetching Chromium into {CACHE}, once", file=sys.stderr)
    try:
        planned = _run("apt-get", "install", "--simulate", "--no-install-recommends", _PACKAGE)
        names = [line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")]
        _run("apt-get", "download", *names)
        for package in CACHE.glob("*.deb"):
            _run("dpkg-deb", "-x", str(package), str(CACHE / "root"))
            package.unlink()
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", "") or ""
        raise NotHere(
            f"Chromium is not installed and could not be fetched ({error} {said[-300:]}): install Debian's {_PACKAGE}, or "
            "put chromium or google-chrome on the path, to run these tests"
        ) from error


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=CACHE, check=True, capture_output=True, text=True, timeout=300)
    return done.stdout


class Chromium:
    """One browser with a new profile. Use as a context manager."""

    def __init__(self) -> None:
        path, variables = program()
        self._open = ExitStack()
        self._profile = Path(mkdtemp(prefix="openbell-chromium-"))
        self._errors = (self._profile / "errors").open("w+")
        options = ["--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={self._profile}"]
        if path.name != _PACKAGE:
            options.append("--headless=new")
        self._process = subprocess.Popen(
            [str(path), *options, "about:blank"],
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
        )
        try:
            self._socket = self._open.enter_context(connect(self._address(), max_size=None, open_timeout=PATIENCE))
        except BaseException:
            self.close()
            raise
        self._numbers = count(1)
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ConnectionClosed, OSError):
            self._open.close()
        self.close()

    def close(self) -> None:
        """End the process and remove its files."""
        self._process.kill()
        self._process.wait()
        self._errors.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def _address(self) -> str:
        """The address that it prints once it listens."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self._process.poll() is None:
            for line in (self._profile / "errors").read_text(errors="replace").splitlines():
                if line.startswith("DevTools listening on "):
                    return line.rpartition(" ")[2]
            time.sleep(0.02)
        raise NotHere(f"Chromium does not start: {(self._profile / 'errors').read_text(errors='replace')[-500:]}")

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The result of a command; events before it are kept in `events`."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message if session is None else {**message, "sessionId": session}))
        while (answer := json.loads(self._socket.recv(timeout=PATIENCE))).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def page(self) -> Page:
        """A new window."""
        return Page(self, self.call("Target.createTarget", url="about:blank")["targetId"])


class Page:
    """One window."""

    def __init__(self, browser: Chromium, target: str) -> None:
        self._browser = browser
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command for this window."""
        return self._browser.call(method, self._session, **parameters)

    def go(self, url: str) -> None:
        """Open a URL and wait until it is shown."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true; the page may be replaced meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(AssertionError):
                if self.value(f"Boolean({expression})"):
                    return
            assert time.monotonic() < deadline, f"gave up waiting for {expression} at {self.value('location.href')}"
            time.sleep(0.01)

    @property
    def url(self) -> str:
        """The address that is shown."""
        return str(self.value("location.href"))

    @property
    def text(self) -> str:
        """What a person can read."""
        return str(self.value("document.body.innerText"))

    def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        quoted = json.dumps(selector)
        self.value(f"document.querySelector({quoted}).scrollIntoView({{block: 'center'}})")
        box = self.value(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
            f"(document.querySelector({quoted}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def write(self, selector: str, text: str) -> None:
        """Type a text into a field instead of what it contains."""
        self.click(selector)
        self.value(f"document.querySelector({json.dumps(selector)}).select()")
        self.call("Input.insertText", text=text)

    def press_enter(self) -> None:
        """Press the enter key."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, **key)

    def complaints(self) -> list[str]:
        """What the browser has complained about so far, such as violations of a content security policy."""
        self.value("0")
        entries = [event["params"]["entry"] for event in self._browser.events if event["method"] == "Log.entryAdded"]
        return [entry["text"] for entry in entries if entry["source"] in {"security", "other", "violation"}]

    def frames(self) -> list[str]:
        """The addresses of the frames in the page, as they could be loaded."""
        tree = self.call("Page.getFrameTree")["frameTree"]
        return [child["frame"].get("unreachableUrl") or child["frame"]["url"] for child in tree.get("childFrames", [])]

    def picture(self) -> bytes:
        """What is shown, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
