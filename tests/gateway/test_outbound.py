"""Requests to URLs that others have chosen, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from openbell.gateway.outbound import Outbound
from openbell.market.errors import InvalidParameter, OutboundFailed, OutboundRefused
from openbell.net.addresses import is_public, parse_origin, parse_target
from openbell.net.response import Response
from tests.gateway import receivers
from tests.gateway.receivers import Receiver, status
from tests.gateway.services import Authority, free_port

HOST = "hooks.example"
PUBLIC_4, PUBLIC_6 = "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"

BAD_FORMS = (
    "",
    "hooks.example/path",
    "//hooks.example/path",
    "http://hooks.example/",  # not encrypted
    "ftp://hooks.example/",
    "file:///etc/passwd",
    "gopher://hooks.example:6379/_FLUSHALL",
    "javascript:alert(1)",
    "data:text/plain,x",
    "unix:///run/docker.sock",
    "https://",
    "https:///path",
    "https://user@hooks.example/",
    "https://user:password@hooks.example/",
    "https://hooks.example@127.0.0.1/",
    "https://hooks.example:443@127.0.0.1/",
    "https://127.0.0.1\\@hooks.example/",
    "https://hooks.example\\.evil.example/",
    "https://hooks.example/#fragment",
    "https://hooks.example#@127.0.0.1/",
    "https://hooks.example/a b",
    "https://hooks.example/\r\nX-Injected: 1",
    "https://hooks.example/\nHost: evil.example",
    "https://hooks.example/\tx",
    "https://hooks.example/\x00",
    " https://hooks.example/",
    "https://hooks.example/\u202e",
    "https://ho\u043eks.example/",  # a Cyrillic o
    "https://127。0。0。1/",  # full stops that IDNA turns into dots
    "https://①②⑦.0.0.1/",
    "https://hooks..example/",
    "https://.hooks.example/",
    "https://hooks.example./",
    "https://-hooks.example/",
    "https://" + "a" * 64 + ".example/",
    "https://hooks.example/" + "a" * 2_048,
    "https://hooks.example:0/",
    "https://hooks.example:22/",
    "https://hooks.example:80/",
    "https://hooks.example:1023/",
    "https://hooks.example:65536/",
    "https://hooks.example:99999/",
    "https://hooks.example:-1/",
    "https://hooks.example:４４３/",  # full-width digits
    "https://hooks.example:/",
    "https://127.1/",
    "https://0x7f.0.0.1/",
    "https://0x7f000001/",
    "https://2130706433/",
    "https://0177.0.0.1/",
    "https://127.0.0.1.1/",
    "https://256.256.256.256/",
    "https://[::1/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[v1.fe80::a]/",
    "https://[127.0.0.1]:70000/",
    "https://%31%32%37.0.0.1/",
)

PRIVATE_HOSTS = (
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::1]",
    "[100::1]",
    "[2001::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:2::1]",
    "[2001:10::1]",
    "[2001:db8::1]",
    "[2002:7f00:1::]",
    "[2002:5db8:d70e::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
)


def names(**table: str | Sequence[str]) -> Any:
    """A resolver with a table; dots of names are written as underscores."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        found = table.get(host.replace(".", "_"))
        if found is None:
            raise OSError("no such name")
        return [found] if isinstance(found, str) else list(found)

    return resolve


def get(outbound: Outbound, url: str, **rest: Any) -> Response:
    return asyncio.run(outbound.request("GET", url, **rest))


def to(receiver: Receiver, **rest: Any) -> Outbound:
    return Outbound(trusted=[receiver.url], **rest)


@pytest.mark.parametrize("url", BAD_FORMS)
def test_a_url_of_another_form_is_refused_before_its_name_is_resolved(url: str) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise AssertionError(f"resolved {host}")

    with pytest.raises(OutboundRefused):
        get(Outbound(resolve=resolve), url)


@pytest.mark.parametrize("host", PRIVATE_HOSTS)
def test_attack_private_address_in_a_url_or_behind_a_name(host: str) -> None:
    with Receiver() as receiver:
        with pytest.raises(OutboundRefused, match="not public"):
            get(Outbound(), f"https://{host}:{receiver.port}/")
        behind = names(hooks_example=[PUBLIC_4, host.strip("[]")])
        with pytest.raises(OutboundRefused, match="not public"):
            get(Outbound(resolve=behind), f"https://{HOST}:{receiver.port}/")
        assert receiver.connections == 0


@pytest.mark.parametrize("address", ["localhost", "", "1.2.3", "fe80::1%1", "::ffff:127.0.0.1%1", "127.0.0.1 "])
def test_text_that_is_not_a_plain_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [PUBLIC_4, PUBLIC_6, "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1",
     "223.255.255.255", "2001:200::1", "2a00::1", f"::ffff:{PUBLIC_4}", f"64:ff9b::{PUBLIC_4}"],
)  # fmt: skip
def test_public_addresses_next_to_special_blocks_are_allowed(address: str) -> None:
    assert is_public(address)


def test_attack_names_of_this_machine() -> None:
    with Receiver() as receiver:
        with pytest.raises(OutboundRefused, match="not public"):
            get(Outbound(), f"https://localhost:{receiver.port}/")
        assert receiver.connections == 0


def test_attack_name_that_resolves_to_another_address_later() -> None:
    """DNS rebinding: the second resolution would give the address of another server."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.1"]

    with Receiver(host="127.0.0.2") as first, Receiver(port=first.port) as second:
        outbound = Outbound(trusted=[f"http://{HOST}:{first.port}"], resolve=resolve)
        assert get(outbound, f"http://{HOST}:{first.port}/x?y=1").status == 204
        assert (asked, len(first.seen), second.connections) == ([HOST], 1, 0)
        assert (first.seen[0].path, first.seen[0].headers["host"]) == ("/x?y=1", f"{HOST}:{first.port}")


def test_tls_is_made_with_the_name_and_its_certificate_is_verified(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    trust = ssl.create_default_context(cafile=str(authority.file))
    right, wrong = authority.issue("right", HOST), authority.issue("wrong", "other.example")
    with Receiver(tls=server_context(right)) as receiver:
        url = f"https://{HOST}:{receiver.port}"
        resolve = names(hooks_example="127.0.0.1")
        assert get(Outbound(trusted=[url], resolve=resolve, tls=trust), f"{url}/").status == 204
        assert receiver.seen[0].server_name == HOST
        with pytest.raises(OutboundFailed, match="certificate"):
            get(Outbound(trusted=[url], resolve=resolve), f"{url}/")
    with Receiver(tls=server_context(wrong)) as receiver:
        url = f"https://{HOST}:{receiver.port}"
        with pytest.raises(OutboundFailed, match="certificate"):
            get(Outbound(trusted=[url], resolve=resolve, tls=trust), f"{url}/")
        assert receiver.seen == []


def server_context(certificate: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    return context


def test_the_next_address_is_tried_if_the_first_refuses_the_connection() -> None:
    with Receiver() as receiver:
        url = f"http://{HOST}:{receiver.port}"
        resolve = names(hooks_example=["127.0.0.3", "127.0.0.1"])
        assert get(Outbound(trusted=[url], resolve=resolve), url).status == 204
        url = f"http://{HOST}:{free_port()}"
        with pytest.raises(OutboundFailed, match="no connection"):
            get(Outbound(trusted=[url], resolve=resolve), url)


def test_a_name_without_an_address_fails() -> None:
    with pytest.raises(OutboundFailed, match="cannot be resolved"):
        get(Outbound(resolve=names()), f"https://{HOST}/")
    with pytest.raises(OutboundFailed, match="no address"):
        get(Outbound(resolve=names(hooks_example=[])), f"https://{HOST}/")


def test_a_resolver_that_hangs_is_bounded_too() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(OutboundFailed, match=r"within 0\.1 s"):
        get(Outbound(resolve=resolve), f"https://{HOST}/", timeout=0.1)


def test_attack_addresses_that_resemble_a_trusted_origin() -> None:
    with Receiver() as receiver:
        outbound = to(receiver)
        for url in (f"http://localhost:{receiver.port}/", f"http://127.0.0.1:{free_port()}/", "http://127.0.0.2/"):
            with pytest.raises(OutboundRefused):
                get(outbound, url)
        with pytest.raises(OutboundRefused):
            get(Outbound(trusted=[f"https://127.0.0.1:{receiver.port}"]), receiver.url)


def test_attack_redirect_into_a_private_network() -> None:
    with Receiver() as secret, Receiver() as receiver:
        receiver.plan.append(status(302, location=f"{secret.url}/latest/meta-data"))
        answer = get(Outbound(trusted=[receiver.url, secret.url]), receiver.url)
        assert (answer.status, secret.connections) == (302, 0)


def test_the_request_is_sent_as_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with Receiver() as receiver:
        receiver.plan.append(status(200, b"yes", set_cookie="a=b", X_Some="1"))
        outbound = to(receiver)
        sent = outbound.request("POST", f"{receiver.url}/p", headers={"X-A": "1", "Host": "other"}, body=b"\x00body")
        answer = asyncio.run(sent)
        assert (answer.status, answer.body, answer.headers["x-some"]) == (200, b"yes", "1")
        get(outbound, receiver.url)
        first, second = receiver.seen
        assert (first.method, first.path, first.body) == ("POST", "/p", b"\x00body")
        assert first.headers["x-a"] == "1"
        assert first.headers["host"] == f"127.0.0.1:{receiver.port}"
        assert first.headers["accept-encoding"] == "identity"
        assert "cookie" not in second.headers
        assert receiver.connections == 2


@pytest.mark.parametrize("value", ["a\r\nX-Injected: 1", "a\nb", "a\x00b"])
def test_attack_header_injection_into_outbound_requests(value: str) -> None:
    with Receiver() as receiver:
        with pytest.raises(OutboundFailed):
            get(to(receiver), receiver.url, headers={"X-A": value})
        assert receiver.seen == []


def test_a_compressed_answer_stays_compressed() -> None:
    bomb = gzip.compress(b"0" * 10_000_000)
    with Receiver() as receiver:
        receiver.plan.append(status(200, bomb, content_encoding="gzip"))
        assert get(to(receiver), receiver.url).body == bomb


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        (receivers.endless_body(), 200),
        (status(200, b"x" * 1_001), 200),
        (status(201, x_long="y" * 40_000), 201),
        (receivers.endless_head(), None),
        (receivers.half_a_body(), 200),
        (receivers.hang_up(), None),
        (receivers.garbage(), None),
    ],
)
def test_an_answer_beyond_the_limits_or_incomplete_fails_with_the_status_if_it_is_known(
    answer: receivers.Answering, known: int | None
) -> None:
    with Receiver() as receiver:
        receiver.plan.append(answer)
        with pytest.raises(OutboundFailed) as caught:
            get(to(receiver), receiver.url, limit=1_000)
        assert caught.value.details.get("status") == known


@pytest.mark.parametrize(
    "answer", [receivers.silence(), receivers.dripping_body(), receivers.endless_interim_answers()]
)
def test_the_whole_request_is_bounded_in_time(answer: receivers.Answering) -> None:
    with Receiver() as receiver:
        receiver.plan.append(answer)
        began = time.monotonic()
        with pytest.raises(OutboundFailed, match=r"within 0\.3 s"):
            get(to(receiver), receiver.url, timeout=0.3)
        assert time.monotonic() - began < 5


def test_messages_do_not_repeat_the_url() -> None:
    """Webhook URLs often hold a secret."""
    with Receiver() as receiver:
        receiver.plan.append(receivers.hang_up())
        for outbound, url in (
            (Outbound(), "https://127.0.0.1/s3cret"),
            (Outbound(), "ftp://hooks.example/s3cret"),
            (Outbound(resolve=names()), f"https://{HOST}/s3cret"),
            (to(receiver), f"{receiver.url}/s3cret"),
        ):
            with pytest.raises((OutboundRefused, OutboundFailed)) as caught:
                get(outbound, url)
            assert "s3cret" not in f"{caught.value} {caught.value.details}"


def test_hosts_and_origins_have_one_form() -> None:
    assert parse_target("HTTPS://Hooks.Example:443?a=B").origin == "https://hooks.example"
    assert parse_target("https://hooks.example?a=B").path == "/?a=B"
    assert parse_target("https://[2606:2800:021F::1]:8443/").authority == "[2606:2800:21f::1]:8443"
    assert parse_origin("HTTP://Desk:80/") == "http://desk"
    for text in ("desk:80", "http://desk/path", "http://user@desk", "http://127.1", ""):
        with pytest.raises(InvalidParameter):
            parse_origin(text)
