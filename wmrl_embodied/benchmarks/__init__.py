"""Benchmarks: how long the parts take on this machine."""
