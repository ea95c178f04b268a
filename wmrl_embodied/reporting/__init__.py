"""What a user sees: metric sinks, plots, videos and the report page."""
