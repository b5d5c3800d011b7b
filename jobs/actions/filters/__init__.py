"""Which rows a list shows: the filters of each noun, declared once for every face.

A field of a `Filter` is a parameter of the API's query, a field of the page's form and of its saved
views, a filter of the admin's list, and a part of what exports and actions on all rows of a filter
name.
"""
