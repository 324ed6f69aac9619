"""No message repeats any part of a password, however a URL is malformed; errors name the file and the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from openbell.desk.settings import load
from openbell.market.errors import OpenbellError, SettingsError
from openbell.stores.records.postgres import PostgresDatabase
from tests.client import run

PARTS = ("hush", "q7zx", "w9vk")
"""No message has any of these parts of a password."""
SEPARATORS = (*"@/?#:[]%&=,;\\", "@@", "/@", "?@", "#@", ":@", "@:", "@/", "%zz", "%40@")


def passwords() -> list[str]:
    """Passwords with each separator between their parts, numbers before and after, and at their ends."""
    found = []
    for each in SEPARATORS:
        found += [each.join(PARTS), f"1{each}2".join(PARTS), f"{each}hush", f"hush{each}"]
        found += [f"12{each}34hush", f"hush{each}5432/q7zx"]
    return found


def assert_hidden(text: str) -> None:
    assert not [part for part in PARTS if part in text], text


@pytest.mark.parametrize(
    "form",
    ["postgresql://ann:{}@host/desk", "postgres://ann:{}@host:5432/desk?sslmode=disable", "postgresql://{}@host/x"],
)
def test_no_part_of_a_password_of_postgresql_is_shown(tmp_path: Path, form: str) -> None:
    refused = 0
    for password in passwords():
        try:
            settings = load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_DATABASE_URL": form.format(password)})
        except SettingsError as error:
            refused += 1
            assert_hidden(error.message)
        else:
            assert_hidden(PostgresDatabase(settings.database_url, "desk").where)
            assert_hidden(repr(settings))
    assert refused > len(passwords()) / 2


@pytest.mark.parametrize(
    "name",
    [
        "influx_url",
        "arche_url",
        "chart_img_url",
        "chart_img_docs_url",
        "public_url",
        "dask",
        "webhook_origins",
        "allowed_origins",
    ],
)
def test_no_url_of_another_service_may_have_a_password(tmp_path: Path, name: str) -> None:
    scheme = "tcp" if name == "dask" else "https"
    for password in passwords():
        url = f"{scheme}://ann:{password}@host:8086"
        with pytest.raises(OpenbellError) as refused:
            load({"OPENBELL_HOME": str(tmp_path), f"OPENBELL_{name.upper()}": url})
        assert_hidden(refused.value.message)


def test_commands_show_no_part_of_it(tmp_path: Path) -> None:
    toml = tmp_path / "openbell.toml"
    for url in ("postgresql://ann:hush@q7zx@127.0.0.1:9/desk", "postgresql://ann:hush%40q7zx@127.0.0.1:9/desk"):
        toml.write_text(f'database_url = "{url}"\n')
        for words in (["doctor"], ["health"], ["call", "portfolio", "get_balance", "{}"]):
            done = run(tmp_path, *words, POOL_POSTGRES_CONNECT="1")
            assert done.returncode
            assert_hidden(done.stdout + done.stderr)


# Where an error is


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("\n# comment\nport = 70000", "line 3: port must be between 0 and 65,535"),
        ("port = 'x'", "line 1: port must be a whole number, not 'x'"),
        ("feed = 'sim'\n\n  read_only = 'perhaps'", "line 3: read_only must be true or false"),
        (
            "pool_postgres_min = 9\npool_postgres_max = 3",
            "line 1: pool_postgres_min must not be more than pool_postgres_max",
        ),
        ("log_level = 'loud'", "line 1: log_level is 'loud': use debug"),
        ("database_url = 'postgresql://a:b@c@d/x'", "line 1: database_url cannot be read"),
        ("a = 1\nb = \nc = 2", "Invalid value (at line 2, column 5)"),
        ("nonsense = 1", "line 1: unknown setting 'nonsense'"),
    ],
)
def test_an_error_in_the_file_names_its_line_and_key(tmp_path: Path, toml: str, message: str) -> None:
    (tmp_path / "openbell.toml").write_text(toml)
    with pytest.raises(SettingsError) as refused:
        load({"OPENBELL_HOME": str(tmp_path)})
    assert str(tmp_path / "openbell.toml") in refused.value.message
    assert message in refused.value.message
    assert "OPENBELL_" not in refused.value.message


def test_an_error_in_a_variable_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "openbell.toml").write_text("port = 1\npool_postgres_max = 5")
    for name, value, names in (
        ("PORT", "70000", "OPENBELL_PORT must be"),
        ("POOL_POSTGRES_MIN", "9", "line 2: OPENBELL_POOL_POSTGRES_MIN must not be more than pool_postgres_max"),
    ):
        with pytest.raises(SettingsError) as refused:
            load({"OPENBELL_HOME": str(tmp_path), f"OPENBELL_{name}": value})
        assert names in refused.value.message


def test_a_file_that_is_not_text_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "openbell.toml").write_bytes(b"feed = 'sim'\n# \xff\n")
    with pytest.raises(SettingsError, match=r"cannot read .*openbell\.toml, line 2: not UTF-8 text"):
        load({"OPENBELL_HOME": str(tmp_path)})


# TLS


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "sslmode=verify",
            "an sslmode that does not exist: use disable, allow, prefer, require, verify-ca, verify-full",
        ),
        ("sslmode=verify-full", "sslmode=verify-full needs sslrootcert=FILE"),
        ("sslmode=verify-ca&sslrootcert=/nowhere/ca.pem", "the file of sslrootcert, /nowhere/ca.pem, does not exist"),
        ("sslmode=require&sslcert=/nowhere/me.pem", "the file of sslcert, /nowhere/me.pem, does not exist"),
    ],
)
def test_wrong_tls_settings_are_said_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, message: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    url = f"postgresql://ann:hush@host/desk?{query}"
    with pytest.raises(SettingsError) as refused:
        load({"OPENBELL_HOME": str(tmp_path), "OPENBELL_DATABASE_URL": url})
    assert message in refused.value.message
