"""The consent page in a real browser: what a person sees, and what a hostile page can and cannot do."""

from __future__ import annotations

import html
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.chromium import Chromium, NotHere, Page
from tests.gateway.oauth.people import App, Browser
from tests.gateway.oauth.server import PASSPHRASE, Gateway

ALLOW, DENY = "button[value=allow]", "button[value=deny]"


class Site(ThreadingHTTPServer):
    """Another website, or a program that waits for its user to come back."""

    def __init__(self, host: str) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages: dict[str, str] = {}
        self.asked: list[str] = []
        super().__init__((host, 0), _Handler)

    def __enter__(self) -> Site:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def answer(self) -> dict[str, str]:
        """The parameters with which a user came back."""
        (path,) = [each for each in self.asked if each.startswith("/callback")]
        return dict(parse_qsl(urlsplit(path).query))


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.pages.get(urlsplit(self.path).path, "<p>done</p>").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def _browser() -> Iterator[Chromium]:
    try:
        started = Chromium()
    except NotHere as missing:
        pytest.skip(f"NOT TESTED: {missing}")
    with started:
        yield started


@pytest.fixture
def page(_browser: Chromium) -> Page:
    _browser.events.clear()
    return _browser.page()


@contextmanager
def waiting(gateway: Gateway, host: str = "127.0.0.1", **metadata: str) -> Iterator[tuple[App, Site]]:
    """A client that waits on this machine, registered without a port."""
    with Site(host) as site:
        place = f"http://[{host}]" if ":" in host else f"http://{host}"
        app = App(gateway, redirect_uris=[f"{place}/callback"], **metadata)
        app.redirect_uri = f"{place}:{site.server_port}/callback"
        yield app, site


def link(app: App, **changes: str | None) -> str:
    return app.gateway.url + app.link(**changes)


def test_a_person_grants_a_part_of_what_was_asked(gateway: Gateway, page: Page) -> None:
    with waiting(gateway, client_name="Chart reader") as (app, site):
        page.go(link(app, scope="read trade admin"))
        for shown in ("Allow Chart reader to use this desk?", "Not verified", f"127.0.0.1:{site.server_port}"):
            assert shown in page.text
        assert page.value(f"getComputedStyle(document.querySelector('{ALLOW}')).backgroundColor") == "rgb(26, 95, 180)"
        page.click("input[name=scope_admin]")
        page.click("input[name=scope_trade]")
        page.write("input[name=passphrase]", PASSPHRASE)
        page.click(ALLOW)
        page.until("location.pathname === '/callback'")
        answer = site.answer()
    assert (answer["state"], answer["iss"]) == ("a state", gateway.url)
    token = app.exchange(answer["code"]).json()["access_token"]
    assert gateway.asks(token).json() == {"subject": "local", "scopes": ["read"]}
    assert page.complaints() == []


def test_a_wrong_passphrase_is_said_and_the_right_one_works_with_the_enter_key(gateway: Gateway, page: Page) -> None:
    with waiting(gateway) as (app, site):
        page.go(link(app))
        page.write("input[name=passphrase]", "not this one, surely")
        page.click(ALLOW)
        page.until("document.querySelector('[role=alert]')")
        assert "The name or the passphrase is wrong." in page.text
        assert page.value("document.querySelector('input[name=passphrase]').value") == ""
        page.write("input[name=passphrase]", PASSPHRASE)
        page.press_enter()
        page.until("location.pathname === '/callback'")
        assert app.exchange(site.answer()["code"]).status_code == 200
    assert page.complaints() == []


def test_a_person_refuses_without_a_passphrase(gateway: Gateway, page: Page) -> None:
    with waiting(gateway) as (app, site):
        page.go(link(app))
        page.click(DENY)
        page.until("location.pathname === '/callback'")
        assert site.answer()["error"] == "access_denied"


def test_an_empty_passphrase_is_not_sent(gateway: Gateway, page: Page) -> None:
    with waiting(gateway) as (app, site):
        page.go(link(app))
        page.click(ALLOW)
        assert page.value("document.querySelector('input[name=passphrase]').validity.valueMissing") is True
        assert page.url == link(app)
        assert site.asked == []


@pytest.mark.parametrize("host", ["localhost", "::1"])
def test_a_program_may_wait_at_any_name_of_the_machine(gateway: Gateway, page: Page, host: str) -> None:
    try:
        with waiting(gateway, host) as (app, site):
            page.go(link(app))
            page.write("input[name=passphrase]", PASSPHRASE)
            page.click(ALLOW)
            page.until("location.pathname === '/callback'")
            assert "code" in site.answer()
    except OSError as error:
        pytest.skip(f"NOT TESTED: this machine has no {host}: {error}")


def test_a_person_comes_from_another_site_in_two_windows(gateway: Gateway, _browser: Chromium) -> None:
    """The cookies are for this site only: they must work for a person whom another site sent here."""
    with waiting(gateway) as (app, site), Site("localhost") as other:
        other.pages["/"] = f'<a href="{html.escape(link(app))}">sign in</a>'
        pages = [_browser.page(), _browser.page()]
        for each in pages:
            each.go(f"http://localhost:{other.server_port}/")
            each.click("a")
            each.until("document.querySelector('input[name=passphrase]')")
        for number, each in enumerate(pages, start=1):
            each.write("input[name=passphrase]", PASSPHRASE)
            each.click(ALLOW)
            each.until("location.pathname === '/callback'")
            assert len([path for path in site.asked if path.startswith("/callback?code=")]) == number


# A hostile page


def test_clickjacking_in_a_frame(gateway: Gateway, page: Page) -> None:
    with waiting(gateway) as (app, _), Site("localhost") as evil:
        evil.pages["/"] = f'<iframe src="{html.escape(link(app))}" onload="window.loaded = true"></iframe>'
        page.go(f"http://localhost:{evil.server_port}/")
        page.until("window.loaded")
        assert page.value("window.frames.length") == 1
        assert any("frame" in text.lower() for text in page.complaints()), page.complaints()
        assert "passphrase" not in page.text


def test_consent_sent_by_a_hostile_page(gateway: Gateway, page: Page) -> None:
    """The attacker knows a passphrase of an own account and a genuine form, and wants the victim to sign in as him."""
    gateway.add_user("mallory", "read", "mallory knows this one")
    with waiting(gateway) as (app, site), Site("localhost") as evil:
        attacker = Browser(gateway)
        attacker.open(app.link())
        fields = {
            "form": attacker.form,
            "name": "mallory",
            "passphrase": "mallory knows this one",
            "scope_read": "yes",
            "action": "allow",
        }
        inputs = "".join(f'<input name="{name}" value="{html.escape(value)}">' for name, value in fields.items())
        evil.pages["/"] = (
            f'<form method="post" action="{gateway.url}/authorize/consent">{inputs}<button>win a prize</button></form>'
        )
        page.go(f"http://localhost:{evil.server_port}/")
        page.click("button")
        page.until("location.pathname === '/authorize/consent'")
        assert "The form was not sent from this page." in page.text
        assert site.asked == []


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=document.title='pwned'>", "</h1><script>document.title='pwned'</script>"]
)
def test_a_name_with_a_script(gateway: Gateway, page: Page, name: str) -> None:
    with waiting(gateway, client_name=name) as (app, _):
        page.go(link(app))
        assert page.value("document.title") == "Allow access · Openbell"
        assert name in page.text
        assert page.value("document.querySelectorAll('script, img').length") == 0


def test_a_script_that_got_into_the_page_would_not_run(gateway: Gateway, page: Page) -> None:
    with waiting(gateway) as (app, _):
        page.go(link(app))
        page.value(
            "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\"><p onclick=\"1\">')"
        )
        page.until("document.querySelector('img').complete")
        assert page.value("document.title") == "Allow access · Openbell"
        assert any("Content Security Policy" in text for text in page.complaints())
