"""What web processes and commands do in Redis: publish hints, look at queues, set limits."""
