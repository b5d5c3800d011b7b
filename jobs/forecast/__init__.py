"""When will it be done? A simulation of the waiting runs, by owners' shares and calendars."""
