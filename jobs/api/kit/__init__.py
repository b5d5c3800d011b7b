"""What all resources share.

Each request passes `lean` or Django's middleware, then `front`. `callers` finds the caller.
`errors` chooses the problem of each error, `problems` makes its answer. `bodies` is for bodies,
`queries` for query parameters, `pages` for lists, `etags` for rows that change, `answers`,
`streams` and `events` for answers. `document` completes the OpenAPI document.
"""
