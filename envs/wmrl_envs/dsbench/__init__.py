"""DSBench data modelling: its layout on disk and its relative performance gap."""
