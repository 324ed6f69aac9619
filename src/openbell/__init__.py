"""Openbell: the whole trading desk as MCP tools.

Data walks through the rooms in one direction: market → indicators → signals → stores → feeds → desk →
protocol → servers → cli. A room imports only from rooms before it (import-linter holds it).
"""

from pkgutil import extend_path

# Feeds and brokers may come from other folders on Python's path.
__path__ = extend_path(__path__, __name__)
__version__ = "1.0.0"
