"""Two tiny simulator-free environments for tests."""
