"""The fair queue in plain Python: the rules that the Lua scripts must follow. Pure."""
