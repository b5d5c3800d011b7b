"""Owners: their weights, limits and pauses, and what the fair queue is told of them."""
