"""The official MCP inspector, locked in package-lock.json beside this file."""
