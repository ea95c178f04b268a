"""Simulation: bandits with wrong world models, on which every estimator is compared."""
