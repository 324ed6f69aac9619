"""Feeds: sources of bars behind one port (history and stream). Each feed is a package that defines FEED.

Packages `openbell/feeds/NAME` in other folders on Python's path are found too.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
