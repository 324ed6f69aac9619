"""Brokers behind the port of `trading.broker`; each is a package.

A package `openbell/brokers/NAME` in another folder of Python's path is found too.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
