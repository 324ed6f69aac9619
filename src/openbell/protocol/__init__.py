"""Shared by all MCP servers: sessions, tools as values, dialects of results and errors, cache, truth header, stdio."""
