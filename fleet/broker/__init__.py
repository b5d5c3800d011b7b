"""Redis for web processes and commands: publish hints, read queues, set owners."""
