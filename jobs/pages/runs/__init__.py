"""The pages of runs: the list with its filter, verbs for all runs of a filter, and one run."""
