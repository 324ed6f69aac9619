"""What all MCP servers share: tools as values, dialects of results and errors, cache, pages, truth, the stdio transport."""
