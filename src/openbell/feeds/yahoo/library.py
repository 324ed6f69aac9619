"""Loads yfinance on first use, because it takes a second and, with pandas, 120 MB; and makes its sessions.

Of yfinance only `YfData.get` is used, which obtains Yahoo's cookies and crumb and accepts its consent form, as a browser
does. Its functions for prices are not used: they log most failures and return an empty table instead.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from openbell.market.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT = 10.0
"""Seconds for one request. yfinance would wait 30 s for a cookie."""
CHART = "/v8/finance/chart/"
_COOKIE = "https://fc.yahoo.com"
"""The address at which yfinance obtains a cookie."""
_COOKIE_REFUSED = frozenset({401, 403})
"""HTTP statuses after which yfinance obtains another cookie and repeats the request."""


@dataclass(frozen=True, slots=True)
class YahooAnswer:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stopped(Exception):
    """The caller was cancelled before the request was sent."""


class _Final(Exception):
    """A response to a request for a chart that another cookie would not change."""

    def __init__(self, answer: YahooAnswer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class YahooClient:
    """yfinance's client with cookies of its own. `get` blocks: call it in a thread."""

    def __init__(self, proxy: str) -> None:
        data, session = _load()
        self._running = threading.local()
        self._session = session(self, proxy)
        # Not YfData(…): that returns the same object, with the same cookies, to everyone in the process.
        self._data = type.__call__(data, self._session)

    def get(self, url: str, params: Mapping[str, str], stop: threading.Event) -> YahooAnswer:
        """Returns the response; after `stop` is set, no further request is sent. Raises whatever yfinance raises."""
        self._running.stop = stop
        try:
            response = self._data.get(url, params=params, timeout=TIMEOUT)
        except _Final as final:
            return final.answer
        return _answer(response)

    def before_request(self) -> None:
        """Raises `Stopped` if the caller of `get` was cancelled."""
        if self._running.stop.is_set():
            raise Stopped

    def close(self) -> None:
        """Close all connections."""
        self._session.close()


@cache
def _load() -> tuple[Any, Any]:
    """Returns yfinance's `YfData` and the class of its sessions."""
    # TA-Lib is loaded without pandas, which yfinance needs. Python's lock on this module keeps the two imports apart.
    import_module("openbell.indicators.ta_lib")
    try:
        with _silent():
            import yfinance
            from curl_cffi import requests
            from yfinance.data import YfData
    except ImportError as missing:
        raise SettingsError(
            f"The feed yahoo needs a package that is not installed ({missing}): "
            f"{sys.executable} -m pip install 'openbell[yahoo]'"
        ) from missing
    # yfinance would write cookies to the user's cache folder. This path cannot be a folder, so it keeps them in memory.
    yfinance.set_tz_cache_location(os.devnull)
    return YfData, _session_class(requests.Session)


@contextmanager
def _silent() -> Iterator[None]:
    """Suppresses the output of yfinance: it logs to standard error if its logger has no handler, and shows warnings."""
    logger = logging.getLogger("yfinance")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _session_class(base: Any) -> Any:
    class Session(base):  # type: ignore[misc] # curl_cffi is loaded at run time
        """A session that imitates a browser, limits every request in time, and stops when its caller is cancelled."""

        def __init__(self, client: YahooClient, proxy: str) -> None:
            super().__init__(impersonate="chrome")
            self._client = client
            self._proxy = proxy.rstrip("/") + "/" if proxy else ""
            self._cookie_response: Any = None

        def request(self, method: str, url: str, **given: Any) -> Any:
            self._client.before_request()
            if url == _COOKIE and self._cookie_response is not None and len(self.cookies):
                return self._cookie_response  # without its cache folder, yfinance would fetch a cookie for every chart
            given["timeout"] = min(given.get("timeout") or TIMEOUT, TIMEOUT)
            response = super().request(method, self._proxy + url, **given)
            response.url = response.url.removeprefix(self._proxy)
            if CHART in url and response.status_code >= 400 and response.status_code not in _COOKIE_REFUSED:
                raise _Final(_answer(response))
            if url == _COOKIE:
                self._cookie_response = response
            return response

    return Session


def _answer(response: Any) -> YahooAnswer:
    headers = {name.lower(): value for name, value in response.headers.items() if value is not None}
    return YahooAnswer(response.status_code, headers, response.content)
