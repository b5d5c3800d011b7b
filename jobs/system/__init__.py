"""What runs by itself: promotion, rescue, the sweep for lost hints, partitions, beat."""
