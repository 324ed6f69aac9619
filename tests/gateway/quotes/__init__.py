"""The quotes API over HTTP."""
