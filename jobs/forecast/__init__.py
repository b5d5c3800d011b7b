"""When will it be done? A simulation of what waits, by owners' shares and calendars."""
