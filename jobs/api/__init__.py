"""The REST API, at `/api/v1/`: one module a resource, each with its schemas beside it.

`site` puts the resources together. `kit` has what they share: who calls, problem details, bodies,
pages, ETags. A resource finds rows through `jobs.models.access`, behind the barrier. It changes
them only by verbs of the lower packages, with the barrier lifted. Users read `docs/use/api.md`.
"""
