"""Policies behind one contract."""
