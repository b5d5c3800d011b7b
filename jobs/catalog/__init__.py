"""Tasks: which may be submitted, their policies, their arguments and results as bytes."""
