"""Real executions in supervised workers."""
