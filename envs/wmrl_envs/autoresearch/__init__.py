"""Sandboxes that score the machine-learning code an agent writes."""
