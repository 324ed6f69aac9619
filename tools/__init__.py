"""Generates the documentation: reference pages, pictures and the manifest of the server arche. Not part of the wheel."""
