"""Attacks on the consent page and its sign-in, each refused."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from openbell.gateway.oauth.passphrases import ADDRESS_LIMIT, USER_LIMIT, Cost
from tests.gateway.oauth.people import REDIRECT, App, Browser, answer_in, error_of
from tests.gateway.oauth.server import PASSPHRASE, Gateway


def refused(page: httpx2.Response, status: int = 403) -> str:
    """The text of a page that gives nothing."""
    assert page.status_code == status, page.text
    assert "location" not in page.headers
    return page.text


# Forged consent


def test_consent_without_the_cookie(app: App, browser: Browser) -> None:
    browser.open(app.link())
    browser.http.cookies.clear()
    assert "does not belong to this browser" in refused(browser.submit())


def test_consent_with_the_cookie_of_another_browser(gateway: Gateway, app: App, browser: Browser) -> None:
    """An attacker's form, sent with the victim's browser, would give the attacker's client access."""
    attacker = Browser(gateway)
    attacker.open(app.link())
    browser.open(app.link())
    assert "does not belong to this browser" in refused(browser.submit(form=attacker.form))


def test_consent_with_the_cookie_of_another_form_under_its_name(gateway: Gateway, app: App, browser: Browser) -> None:
    attacker = Browser(gateway)
    attacker.open(app.link())
    (name,) = attacker.http.cookies
    browser.open(app.link())
    (mine,) = browser.http.cookies.values()
    browser.http.cookies.set(name, mine)
    assert "does not belong to this browser" in refused(browser.submit(form=attacker.form))


def test_consent_replayed(app: App, browser: Browser) -> None:
    browser.open(app.link())
    form = browser.form
    answer_in(browser.submit())
    assert "sent before" in refused(browser.submit(form=form))


def test_consent_sent_twice_at_once(app: App, browser: Browser) -> None:
    browser.open(app.link())
    form = browser.form
    with ThreadPoolExecutor(4) as threads:
        pages = list(threads.map(lambda _: browser.submit(form=form).status_code, range(4)))
    assert sorted(pages) == [303, 403, 403, 403]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:1"])
def test_consent_sent_from_another_site(app: App, browser: Browser, origin: str) -> None:
    browser.open(app.link())
    assert "not sent from this page" in refused(browser.submit({"Origin": origin}))


def test_consent_without_an_origin(app: App, browser: Browser) -> None:
    browser.open(app.link())
    assert "not sent from this page" in refused(browser.submit({}))


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_consent_that_the_browser_calls_cross_site(app: App, browser: Browser, site: str) -> None:
    browser.open(app.link())
    headers = {"Origin": app.gateway.url, "Sec-Fetch-Site": site}
    assert "not sent from this page" in refused(browser.submit(headers))


def test_consent_in_a_form_that_was_changed(app: App, browser: Browser) -> None:
    browser.open(app.link())
    payload, _, seal = browser.form.partition(".")
    for forged in (f"{payload[:-2]}AA.{seal}", f"{payload}.{seal[:-2]}AA", payload, "x.y", "é", "W10.x", "bnVsbA.x"):
        browser.open(app.link())
        refused(browser.submit(form=forged))


def test_consent_in_a_form_that_is_too_old(gateway: Gateway, app: App, browser: Browser) -> None:
    browser.open(app.link())
    gateway.clock.advance(600)
    assert "too old" in refused(browser.submit())


def test_consent_to_a_scope_that_was_not_asked_for(gateway: Gateway, app: App, browser: Browser) -> None:
    browser.open(app.link(scope="read"))
    token = app.exchange(answer_in(browser.submit(scope_admin="yes"))["code"]).json()["access_token"]
    assert gateway.asks(token).json()["scopes"] == ["read"]


def test_consent_to_a_scope_that_the_user_lacks(gateway: Gateway, app: App, browser: Browser) -> None:
    gateway.add_user("ann", "read")
    browser.open(app.link(scope="read trade admin"))
    token = app.exchange(answer_in(browser.submit(name="ann"))["code"]).json()["access_token"]
    assert gateway.asks(token).json() == {"subject": "ann", "scopes": ["read"]}
    browser.open(app.link(scope="admin"))
    assert "ann may grant: read" in refused(browser.submit(name="ann"))


def test_consent_by_a_link(gateway: Gateway, app: App, browser: Browser) -> None:
    browser.open(app.link())
    assert browser.http.get(f"/authorize/consent?form={browser.form}&action=allow").status_code == 405


def test_a_doubled_field(app: App, browser: Browser) -> None:
    browser.open(app.link())
    body = f"form={browser.form}&name=local&passphrase={PASSPHRASE}&action=deny&action=allow"
    headers = {"Origin": app.gateway.url, "Content-Type": "application/x-www-form-urlencoded"}
    refused(browser.http.post("/authorize/consent", content=body, headers=headers), 400)


def test_confused_deputy(gateway: Gateway, app: App, browser: Browser) -> None:
    """Consent to one client is not consent to another with the same name and redirect, nor to a later request."""
    code = app.code()
    other = App(gateway)
    assert other.redirect_uri == app.redirect_uri
    assert error_of(other.exchange(code)) == "invalid_grant"
    for link in (other.link(), app.link()):
        assert "<form" in browser.open(link).text, "each request asks the user"


# What the page shows


def test_clickjacking(app: App, browser: Browser) -> None:
    page = browser.open(app.link())
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-frame-options"] == "DENY"


def test_the_page_loads_nothing_runs_nothing_and_is_not_kept(app: App, browser: Browser) -> None:
    page = browser.open(app.link())
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "form-action 'self' http://127.0.0.1:4711;" in policy
    assert "base-uri 'none'" in policy
    assert "unsafe" not in policy
    assert (page.headers["cache-control"], page.headers["referrer-policy"]) == ("no-store", "same-origin")
    assert page.headers["x-content-type-options"] == "nosniff"
    for forbidden in ("<script", "javascript:", "onclick", "src=", "url(", "@import", "<img", "<link"):
        assert forbidden not in page.text


def test_the_cookie_is_for_this_site_only(app: App, browser: Browser) -> None:
    cookie = browser.open(app.link()).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=600"} <= set(cookie.split("; "))


def test_the_cookie_of_an_https_gateway_is_bound_to_its_host(tmp_path: Path) -> None:
    """Without the prefix, another host of the same domain could set it."""
    with Gateway(tmp_path, public_url="https://desk.example") as gateway:
        app, person = App(gateway), Browser(gateway)
        page = person.open(app.link(resource="https://desk.example/mcp"))
        assert page.headers["set-cookie"].startswith("__Host-openbell-")
        assert "; Secure" in page.headers["set-cookie"]
        assert "not sent from this page" in refused(person.submit({"Origin": gateway.url}))


def test_the_name_of_a_client_is_text(gateway: Gateway, browser: Browser) -> None:
    app = App(gateway, client_name='</bdi><script>alert(1)</script>"><b>x')
    page = browser.open(app.link()).text
    assert "<script" not in page
    assert "<bdi>&lt;/bdi&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&gt;&lt;b&gt;x</bdi>" in page


def test_the_typed_name_is_text(app: App, browser: Browser) -> None:
    browser.open(app.link())
    page = refused(browser.submit(name='"><script>alert(1)</script>', passphrase="wrong"))
    assert "<script" not in page
    assert 'value="&quot;&gt;&lt;script&gt;' in page


def test_an_idn_look_alike_is_shown_in_punycode(gateway: Gateway, browser: Browser) -> None:
    app = App(gateway, redirect_uris=["https://xn--pple-43d.com/cb"])
    page = browser.open(app.link()).text
    assert "xn--pple-43d.com" in page
    assert "technical form" in page


def test_the_passphrase_is_never_sent_back(app: App, browser: Browser) -> None:
    browser.open(app.link())
    assert "wrong passphrase!" not in refused(browser.submit(passphrase="wrong passphrase!"))


# Guessing


def wrong(browser: Browser, name: str = "local") -> int:
    """One wrong guess."""
    return browser.submit(name=name, passphrase="a wrong passphrase").status_code


@pytest.mark.parametrize("name", ["local", "nobody"])
def test_guessing_locks_whether_or_not_the_user_exists(gateway: Gateway, app: App, browser: Browser, name: str) -> None:
    browser.open(app.link())
    assert [wrong(browser, name) for _ in range(8)] == [403] * (USER_LIMIT.free + 1) + [429, 429]
    page = browser.submit(name=name)
    assert (page.status_code, page.headers["retry-after"]) == (429, "1"), "the right passphrase does not help either"
    waits: list[str] = []
    for _ in range(8):
        gateway.clock.advance(float(waits[-1] if waits else 1))
        assert wrong(browser, name) == 403
        waits.append(browser.submit(name=name).headers["retry-after"])
    assert [int(wait) for wait in waits] == [2, 4, 8, 16, 32, 60, 60, 60]


def test_a_user_who_waits_can_sign_in(gateway: Gateway, app: App, browser: Browser) -> None:
    browser.open(app.link())
    for _ in range(USER_LIMIT.free + 2):
        wrong(browser)
    gateway.clock.advance(1)
    assert "code" in answer_in(browser.submit())
    browser.open(app.link())
    assert [wrong(browser) for _ in range(3)] == [403] * 3, "a success forgets the user's failures"


def test_guessing_one_passphrase_for_many_users_locks_the_address(app: App, browser: Browser) -> None:
    browser.open(app.link())
    guesses = [wrong(browser, f"user{number}") for number in range(ADDRESS_LIMIT.free + 3)]
    assert guesses == [403] * (ADDRESS_LIMIT.free + 1) + [429, 429]


def test_an_own_account_does_not_buy_more_guesses(gateway: Gateway, app: App, browser: Browser) -> None:
    gateway.add_user("mallory", "read", "mallory knows this one")
    guesses = []
    for _ in range(USER_LIMIT.free + 3):
        browser.open(app.link())
        guesses.append(wrong(browser))
        browser.open(app.link())
        browser.submit(name="mallory", passphrase="mallory knows this one")
    assert 429 in guesses


def test_guessing_at_once_and_at_two_gateways_has_no_more_tries(tmp_path: Path, gateway: Gateway, app: App) -> None:
    with Gateway(tmp_path, clock=gateway.clock) as second:
        other = App(second)
        people = [(app, Browser(gateway)) for _ in range(6)] + [(other, Browser(second)) for _ in range(6)]
        for client, person in people:
            person.open(client.link())
        with ThreadPoolExecutor(12) as threads:
            answers = list(threads.map(lambda each: wrong(each[1]), people))
    assert answers.count(403) == USER_LIMIT.free + 1
    assert answers.count(429) == len(people) - USER_LIMIT.free - 1


def test_an_unknown_user_takes_as_long_as_a_wrong_passphrase(tmp_path: Path) -> None:
    with Gateway(tmp_path, cost=Cost(n=2**13, r=8, p=1)) as gateway:
        gateway.add_user()
        app, seconds = App(gateway), dict[str, list[float]]()
        for number in range(5):
            for name in ("local", f"nobody{number}"):
                person = Browser(gateway)
                person.open(app.link())
                began = time.perf_counter()
                assert wrong(person, name) == 403
                seconds.setdefault(name[:5], []).append(time.perf_counter() - began)
    known, unknown = (statistics.median(times) for times in seconds.values())
    assert known / 3 < unknown < known * 3, "without a hash it would be a tenth"


def test_the_refusals_of_known_and_unknown_users_read_the_same(app: App, browser: Browser) -> None:
    pages = []
    for name in ("local", "nobod"):
        browser.open(app.link())
        text = browser.submit(name=name, passphrase="a wrong passphrase").text
        pages.append(text.replace(browser.form, "").replace(name, ""))
    assert pages[0] == pages[1]


@pytest.mark.parametrize("passphrase", ["", " " + PASSPHRASE, PASSPHRASE.upper(), PASSPHRASE + "\u0301", "x" * 9000])
def test_an_almost_right_passphrase(app: App, browser: Browser, passphrase: str) -> None:
    browser.open(app.link())
    assert "wrong" in refused(browser.submit(passphrase=passphrase))


def test_a_desk_without_users_says_how_to_add_one(tmp_path: Path) -> None:
    with Gateway(tmp_path) as gateway:
        app, person = App(gateway, redirect_uris=[REDIRECT]), Browser(gateway)
        assert "openbell passphrase" in person.open(app.link()).text
        refused(person.submit())


@pytest.mark.parametrize(
    "value", ['"' + "\\\\" * 7_000 + '"', "; ".join(f"c{n}=1" for n in range(2_000)), "=" * 15_000]
)
def test_attack_a_cookie_header_of_15_kb_costs_nothing(app: App, browser: Browser, value: str) -> None:
    """Python's parser of cookies takes seconds for some values. Only our own cookie is read, by its name."""
    browser.open(app.link())
    own = "; ".join(f"{name}={text}" for name, text in browser.http.cookies.items())
    began = time.process_time()
    answer = browser.submit({"Origin": app.gateway.url, "Cookie": f"a={value}; {own}"})
    assert answer.status_code == 303
    assert time.process_time() - began < 1  # scrypt takes 0.3 s of it; the parser took 4 s


def test_attack_a_second_cookie_of_the_same_name(app: App, browser: Browser) -> None:
    """A page of another port of this host can set cookies too: of two, neither counts."""
    browser.open(app.link())
    name, text = next(iter(browser.http.cookies.items()))
    refused(browser.submit({"Origin": app.gateway.url, "Cookie": f"{name}={'x' * 43}; {name}={text}"}))
