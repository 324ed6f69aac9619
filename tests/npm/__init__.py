"""Programs from npm: one folder for each, with its package.json and its package-lock.json."""
