"""Webhooks and mails about ended runs and submissions, and about failing and late jobs.

`rounds` is the system worker's round: it takes events, stores what each endpoint and subscription
is to get, and sends messages to the fair queue of notices, where `delivery` and `mails` act.
"""
