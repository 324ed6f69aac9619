"""The quotes API without HTTP."""
