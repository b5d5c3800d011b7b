"""The fair queue in plain Python: the rules that the Lua scripts must follow. Pure.

`queue` chooses the next message, by the accounts and weights of owners in `accounts`.
"""
