"""Shared by all pages: access, navigation, filters, cursors, small pieces of HTML.

`docs/understand/pages.md` says how to add a page.
"""
