"""What all resources share.

`front` is what each request passes first; `callers` says who calls; `problems` makes every error's
answer, and `errors` decides which; `bodies` reads JSON; `pages` and `etags` are for lists and for
rows that change. `document` makes the OpenAPI document.
"""
