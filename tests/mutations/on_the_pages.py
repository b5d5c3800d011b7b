"""Guards of the admin's pages: whose rows a person sees, and what somebody else has changed."""

from __future__ import annotations

from typing import Final

from tests.mutations.mutation import Mutation

ACCESS: Final = "tests/jobs/admin/calendars/test_access.py::test_"
WINDOW: Final = "tests/jobs/admin/calendars/test_window_page.py::test_"

ROWS: Final = (
    Mutation(
        "a shared calendar is seen only where it applies",
        "another owner's rows do not exist",
        "jobs/calendars/visibility.py",
        "applying = visible_attachments(Attachment.objects.filter(calendar=OuterRef(key)), user)",
        "applying = Attachment.objects.filter(calendar=OuterRef(key))",
        (f"{ACCESS}a_shared_calendar_is_read_only_and_tells_nothing_of_others",),
    ),
    Mutation(
        "a month counts no runs of others",
        "another owner's rows do not exist",
        "jobs/calendars/reads/month.py",
        "visible_attachments(calendar.attachments.all(), user)",
        "calendar.attachments.all()",
        (f"{ACCESS}a_shared_calendar_is_read_only_and_tells_nothing_of_others",),
    ),
    Mutation(
        "a form that has grown old writes over nothing",
        "what is confirmed is what was shown",
        "jobs/admin/kit/stale_form.py",
        '"") != self.stored:',
        '"") is None:',
        (f"{WINDOW}a_form_that_has_grown_old_is_refused",),
    ),
    Mutation(
        "what is approved is what was read",
        "what is confirmed is what was shown",
        "jobs/admin/calendars/window_decisions.py",
        'return f"{window.revision} {newest or 0}"',
        'return ""',
        (f"{WINDOW}a_form_shown_before_a_change_approves_nothing",),
    ),
)
