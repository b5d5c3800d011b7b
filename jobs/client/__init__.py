"""`fairshift` on the command line: a client of the REST API, without Django.

`__main__` is the command, `arguments` what it takes, `commands` what it does, `api` the requests,
`output` the tables. docs/use/command-line.md is for users.
"""
