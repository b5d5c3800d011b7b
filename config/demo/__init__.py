"""The demo of `manage.py demo`: a fleet of devices, the tasks that act on it, and the scenario."""
