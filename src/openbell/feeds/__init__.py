"""Where bars come from: one port (history and stream), one package per feed, which declares itself.

A folder `openbell/feeds/NAME` elsewhere on Python's path is found too.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
