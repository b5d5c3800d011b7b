"""Shared by the pages of all models: lists, filters, verbs with a confirmation, HTML."""
