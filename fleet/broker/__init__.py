"""Redis for web processes and commands: publish hints, look at queues, set owners' limits."""
