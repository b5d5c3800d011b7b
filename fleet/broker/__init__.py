"""What web processes and commands ask of Redis: publish hints, look at queues, set owners."""
