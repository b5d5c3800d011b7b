"""Django's PostgreSQL backend, which in web processes notices a server that does not answer.

A stopped server (SIGSTOP, a hung disk or host) holds its sockets: neither TCP nor PostgreSQL's own
limits would end a wait for it within seconds.
"""
