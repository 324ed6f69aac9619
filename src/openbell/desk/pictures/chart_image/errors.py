"""The errors of the vendor of chart images."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.market.errors import OpenbellError

KEY_VARIABLE = "CHART_IMG_API_KEY"


class VendorError(OpenbellError):
    """The vendor did not do what was asked. `status` is the HTTP status; None if there was no response."""

    transient = False
    """True if the same request may succeed later."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        """Seconds after which to try again, if they are known."""


class KeyRefused(VendorError):
    """The vendor does not accept the API key."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__(f"Invalid API key. Check {KEY_VARIABLE} environment variable.", status=status)


class VendorRefused(VendorError):
    """The vendor refused the request; the message has its words."""


class PlanRefused(VendorRefused):
    """The plan of the key does not allow the chart; the message has the vendor's words."""


class ConfigRefused(VendorError):
    """The vendor does not accept the chart config; `problems` are `{"field": …, "message": …}`."""

    def __init__(self, problems: Sequence[dict[str, str]], *, status: int | None = None) -> None:
        super().__init__("Invalid configuration", status=status)
        self.problems = list(problems)


class RateLimited(VendorError):
    """More requests than the plan allows, as the vendor or this process counts them."""

    def __init__(
        self, retry_after: int, reason: str = "", *, status: int | None = None, transient: bool = False
    ) -> None:
        unit = "second" if retry_after == 1 else "seconds"
        message = f"Rate limit exceeded. Try again in {retry_after} {unit}." + (f" {reason}" if reason else "")
        super().__init__(message, status=status, retry_after=retry_after)
        self.transient = transient


class VendorFailed(VendorError):
    """The vendor failed, or sent something that cannot be used."""

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: int | None = None, transient: bool = False
    ) -> None:
        super().__init__(message, status=status, retry_after=retry_after)
        self.transient = transient


class VendorUnreachable(VendorError):
    """The vendor did not respond, or its response ended too early."""

    transient = True

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent
        """False if no part of the request has left this machine."""
