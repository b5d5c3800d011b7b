"""When runs will be done: a simulation of what waits, by owners' shares and calendars."""
