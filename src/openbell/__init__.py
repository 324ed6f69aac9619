"""Openbell: the whole trading desk as MCP tools.

Data walks through the rooms in one direction: market → indicators → signals → stores → feeds → desk →
protocol → servers → cli. A room imports only from rooms before it (import-linter holds it).
"""

__version__ = "0.1.0"
