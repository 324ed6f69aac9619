"""One module for each file format. Each defines `FORMAT`; `importing.registry` finds it."""
