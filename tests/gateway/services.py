"""The backtester as a process on a real socket, and certificates for it."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from openbell.backtest.jobs import WalkForwardJob
from openbell.backtest.walk_forward import Windows
from openbell.desk.settings import Settings, load
from tests.backtest.sample_jobs import BARS, SETUP, SPEC
from tests.client import OPENBELL, PATIENCE, environment
from tests.prefork import Process
from tests.waiting import wait_for


class Service:
    """`openbell backtester` on a free port. Use as a context manager."""

    def __init__(self, home: Path, *words: str, workers: int = 2, port: int = 0) -> None:
        self.home = home
        command = [*OPENBELL, "backtester", "--port", str(port), "--workers", str(workers), *words]
        pipe = subprocess.PIPE
        self.process = Process(command, env=environment(home), text=True, stdout=pipe, stderr=pipe)
        self._children: dict[int, psutil.Process] = {}
        assert self.process.stdout
        self.first_line = self.process.stdout.readline()
        if not self.first_line:
            _, errors = self.process.communicate(timeout=PATIENCE)
            raise AssertionError(errors)
        self.address = self.first_line.split()[3]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.workers()
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)
        wait_for(lambda: all(map(ended, self._children.values())), "the workers to end")
        for pid in self._children:
            with suppress(ChildProcessError):  # this process may have adopted it; see tests/prefork.py
                os.waitpid(pid, os.WNOHANG)

    def settings(self, **settings: Any) -> Settings:
        """Settings of a desk that uses this service."""
        texts = {f"OPENBELL_{name.upper()}": str(value) for name, value in settings.items()}
        return load({"OPENBELL_HOME": str(self.home), "OPENBELL_BACKTESTER": self.address, **texts})

    def workers(self) -> list[psutil.Process]:
        """The worker processes that run now."""
        found = psutil.Process(self.process.pid).children() if self.process.poll() is None else []
        self._children |= {each.pid: each for each in found}
        return [each for each in found if not ended(each)]

    def busy_worker(self) -> psutil.Process:
        """A worker that computes: its processor time grows."""
        before = {each.pid: each.cpu_times().user for each in self.workers()}
        busy: list[psutil.Process] = []

        def computes() -> bool:
            busy[:] = [each for each in self.workers() if each.cpu_times().user > before.get(each.pid, 0) + 0.1]
            return bool(busy)

        wait_for(computes, "a worker to compute")
        return busy[0]

    def connections(self) -> int:
        """The open connections of clients."""
        found = psutil.Process(self.process.pid).net_connections("tcp")
        return sum(each.status == psutil.CONN_ESTABLISHED for each in found)

    def stop(self) -> int:
        """End it with a signal; its exit code."""
        self.workers()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def ended(process: psutil.Process) -> bool:
    """Whether a process has ended, though its parent may not know yet."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def long_job(combinations: int = 10_000) -> WalkForwardJob:
    """A job of minutes."""
    return WalkForwardJob(SPEC, BARS, [{}] * combinations, SETUP, Windows(500, 100))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass(frozen=True)
class Certificate:
    """Files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority for tests."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._name = folder, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(_pem(self._signed(self._name, self._key, x509.BasicConstraints(True, None))))

    def issue(self, name: str, host: str | None = None) -> Certificate:
        """A certificate for a host name, or for 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        holder = x509.DNSName(host) if host else x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        local = x509.SubjectAlternativeName([holder])
        made = Certificate(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        made.certificate.write_bytes(_pem(self._signed(subject, key, local)))
        form = serialization.PrivateFormat.PKCS8
        made.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        return made

    def _signed(self, subject: x509.Name, key: Any, extension: Any) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
