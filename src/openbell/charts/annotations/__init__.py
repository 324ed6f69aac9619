"""The annotations of chart configs: one value for each kind, with a function that draws it over the price."""
