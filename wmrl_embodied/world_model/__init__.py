"""Learned outcome predictors behind one contract."""
