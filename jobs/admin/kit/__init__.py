"""Shared by the pages of all models: lists, filters, verbs with a confirmation, HTML.

`verb_pages.VerbAdmin.may` decides who may use a verb, such as cancel, on a row.
"""
