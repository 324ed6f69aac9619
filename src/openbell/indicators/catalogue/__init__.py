"""One module per indicator. To add an indicator, add a module."""
