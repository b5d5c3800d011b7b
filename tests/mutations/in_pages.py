"""Guards between owners and between users, in `jobs/pages` and `jobs/runs/reads`."""

from __future__ import annotations

from typing import Final

from tests.mutations.mutation import Mutation

ISOLATION: Final = "tests/jobs/pages/matrix/test_isolation.py::test_"
POLLS: Final = "tests/jobs/pages/kit/test_polls.py::test_"
SCRAPES: Final = "tests/jobs/pages/metrics/test_access.py::test_"
TENANTS: Final = "isolation of owners"

ERRORS: Final = "tests/jobs/pages/test_hidden_errors.py::test_"
PERMISSION: Final = "the permission `view_arguments`"

ROWS: Final = (
    Mutation(
        "error texts are shown as arguments are",
        PERMISSION,
        "if False:",
        (
            f"{ERRORS}error_texts_need_the_permission_of_arguments[failures]",
            f"{ERRORS}error_texts_need_the_permission_of_arguments[the list in the admin]",
            f"{ERRORS}a_token_sees_error_texts_with_operate[CSV]",
        ),
    ),
    Mutation(
        "error texts of attempts are shown as arguments are",
        PERMISSION,
        "if False:",
        (
            f"{ERRORS}error_texts_need_the_permission_of_arguments[the run]",
            f"{ERRORS}a_token_sees_error_texts_with_operate[API: the timeline]",
        ),
    ),
    Mutation(
        "a plan names all owners",
        TENANTS,
        "if False:",
        ("tests/jobs/pages/test_plan.py::test_a_member_of_one_owner_sees_no_plan",),
        fails_with="permission denied",  # the barrier in PostgreSQL holds
    ),
    Mutation(
        "a list has rows of the visitor's owners only",
        TENANTS,
        "seen = rows",
        (
            f"{ISOLATION}no_answer_contains_foreign_rows[filters-submissions]",
            f"{ISOLATION}no_answer_depends_on_foreign_rows[filters-overview]",
        ),
    ),
    Mutation(
        "a list has rows of the chosen owner only",
        TENANTS,
        "return seen",
        (f"{ISOLATION}only_rows_of_the_chosen_owner_are_shown[submissions-both]",),
    ),
    Mutation(
        "a row of another owner is not found",
        TENANTS,
        "found = rows.filter(**key).first()",
        (f"{ISOLATION}foreign_rows_are_answered_as_unknown_ones[filters-run]",),
    ),
    Mutation(
        "a verb needs its scope for the owner of the row",
        TENANTS,
        "if False:",
        (f"{ISOLATION}a_viewer_reads_and_changes_nothing[run_action cancel]",),
    ),
    Mutation(
        "a page needs its permission",
        TENANTS,
        "if not access.permits(permission) and False:",
        (f"{ISOLATION}a_member_without_permissions_is_told_nothing[runs]",),
    ),
    Mutation(
        "a page is behind the barrier",
        TENANTS,
        "if False:",
        (
            f"{ISOLATION}no_answer_contains_foreign_rows[barrier-submissions]",
            f"{ISOLATION}foreign_rows_are_answered_as_unknown_ones[barrier-run]",
        ),
    ),
    Mutation(
        "a page needs a login",
        TENANTS,
        "if False:",
        (f"{ISOLATION}without_a_login_a_visitor_is_sent_to_it[runs]",),
    ),
    Mutation(
        "an owner of others cannot be chosen",
        TENANTS,
        "rows = Owner.objects.all()",
        (f"{ISOLATION}another_owner_cannot_be_chosen[filters-runs]",),
    ),
    Mutation(
        "the switch offers the visitor's owners only",
        TENANTS,
        'rows = Owner.objects.order_by("slug")',
        (f"{ISOLATION}no_answer_contains_foreign_rows[filters-workers]",),
    ),
    Mutation(
        "an ETag of another stamp, such as another visitor's, is not that of this answer",
        TENANTS,
        "if seal:",
        (
            f"{POLLS}the_etag_of_another_visitor_does_not_serve",
            f"{POLLS}an_etag_opens_nothing",
            f"{POLLS}a_change_is_shown_by_the_next_poll",
        ),
    ),
    Mutation(
        "a saved view is its user's only",
        TENANTS,
        "return SavedView.objects.all()",
        (
            f"{ISOLATION}saved_views_are_their_users_only[rename_view-root]",
            f"{ISOLATION}foreign_rows_are_answered_as_unknown_ones[filters-delete_view]",
        ),
    ),
    Mutation(
        "an address that is not listed needs a token",
        TENANTS,
        "if True:",
        (
            f"{SCRAPES}another_address_needs_one",
            f"{SCRAPES}by_default_no_address_is_listed",
        ),
    ),
    Mutation(
        "metrics are of all owners, so a token of one does not open them",
        TENANTS,
        "if False:",
        (f"{SCRAPES}a_token_of_one_owner_may_not_scrape",),
    ),
)
