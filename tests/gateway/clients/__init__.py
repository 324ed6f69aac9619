"""Programs of others that are clients of MCP servers: each connects to every server over stdio and HTTP."""
