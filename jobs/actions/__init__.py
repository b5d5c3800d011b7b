"""What a person or a program does to rows: one declaration of an action, for every face.

A module here declares the actions of one noun. The API, the pages, the admin and the command line
draw an action from its declaration, and `perform` is the only way to act.
`docs/understand/pages.md` says how to add one.
"""

from jobs.actions.declared import HIDDEN, Action, Noun, Reason, Shown, creation_of, shown_in
from jobs.actions.performing import (
    Done,
    available,
    create,
    find,
    find_all,
    may_create,
    may_somewhere,
    perform,
    perform_on_all,
    problem_of,
    refuse_unless,
    refuse_without_permission,
    refuse_without_scope,
)

__all__ = [
    "HIDDEN",
    "Action",
    "Done",
    "Noun",
    "Reason",
    "Shown",
    "available",
    "create",
    "creation_of",
    "find",
    "find_all",
    "may_create",
    "may_somewhere",
    "perform",
    "perform_on_all",
    "problem_of",
    "refuse_unless",
    "refuse_without_permission",
    "refuse_without_scope",
    "shown_in",
]
