"""Boot steps of a worker: what happens at its edges, without a wrapper task."""
