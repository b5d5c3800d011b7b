"""The pages of calendars: their list, a month, a day, and the decisions on windows."""
