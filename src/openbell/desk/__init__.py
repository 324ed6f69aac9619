"""The application: settings, bars, the collector, signals, alerts, charts and trading, composed from the settings."""
