"""A prefork pool with lower latency, and the children that work in it."""
