"""The REST API, at `/api/v1/`: one module a resource, each with its schemas beside it.

`site` puts the resources together. `kit` has what they share: who calls, problem details, bodies,
pages, ETags. A resource finds rows through `jobs.models.access` and changes them only by the verbs
of the packages below, with the barrier lifted. `docs/use/api.md` is for users.
"""
