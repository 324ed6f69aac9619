"""Brokers that stand outside this machine, behind the port of `trading.broker`.

A folder `openbell/brokers/NAME` elsewhere on Python's path is found too.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
