"""LIBERO robot simulation behind a Gymnasium face."""
