"""Sampling, the update step, the loop, checkpoints and evaluation."""
