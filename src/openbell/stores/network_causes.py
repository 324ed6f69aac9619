"""The cause of a failed connection or file in words, without the insides of libraries."""

from __future__ import annotations

import errno
import os
import socket
import ssl

LOST = "the connection was lost"
_CERTIFICATES = {
    10: "the certificate of the server has expired: check it, and the clock of this machine",
    62: "the certificate of the server is for another host name: use the name in it, or sslmode=verify-ca",
    64: "the certificate of the server is for another address: use the name in it, or sslmode=verify-ca",
}
"""By OpenSSL's code."""


def system_words(error: OSError) -> str:
    """Returns the cause of an error of the system in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        unknown = "the certificate of the server is not signed by an authority that is trusted here: check sslrootcert"
        return _CERTIFICATES.get(error.verify_code, unknown)
    if isinstance(error, ssl.SSLError):
        return "TLS failed: check sslmode, and the files of sslrootcert, sslcert and sslkey"
    if isinstance(error, socket.gaierror):
        return "the host name is not known"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if error.errno == errno.ECONNREFUSED:
        return "nothing listens there (connection refused)"
    if error.errno in {errno.ECONNRESET, errno.EPIPE}:
        return LOST
    if error.errno:
        return os.strerror(error.errno) + (f": {error.filename}" if error.filename else "")
    if "SSL upgrade" in str(error):
        return "it offers no TLS, and sslmode requires it"
    return LOST if isinstance(error, ConnectionError) else "it cannot be reached"


def cause_of(error: BaseException | None) -> str:
    """Returns the cause of a library's error: that of the error of the system from which it was raised."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return LOST if error is None else system_words(error)
