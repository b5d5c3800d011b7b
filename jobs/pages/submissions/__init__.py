"""The pages of submissions: the list, and one with its progress and its forecast."""
