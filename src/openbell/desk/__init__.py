"""The application: settings, the read-through bar service, the collector, signals and alerts over them."""
