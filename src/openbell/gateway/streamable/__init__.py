"""The Streamable HTTP transport: POST for messages, GET for pushes, in every protocol revision that the SDK supports."""
