"""Shared by the pages of all models: lists, filters, buttons and menus of actions, HTML."""
