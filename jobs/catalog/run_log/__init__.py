"""The log of an attempt: what a running task logs and prints, kept in chunks of lines.

`capture` sees records and prints, and finds the attempt that they belong to. `lines` says
what a line and a chunk are, `buffer` which lines stay of a long log. `attempt` is one
attempt's log, `writer` the thread that writes it. docs/decisions/0048 has the reasons.
"""
