"""MLE-Dojo competitions: their layout on disk, their metrics, their five actions, HumanRank."""
