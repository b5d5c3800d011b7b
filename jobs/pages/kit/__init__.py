"""What all pages share: access, navigation, filters, cursors, small pieces of HTML.

`docs/understand/pages.md` says how to add a page.
"""
