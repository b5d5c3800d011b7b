"""What a durable run costs: the tables of docs/operate/scale.md."""
