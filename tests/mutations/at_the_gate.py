"""Guards of the gate: windows, approvals, overrides and closes."""

from __future__ import annotations

from typing import Final

from tests.mutations.mutation import Mutation

ADMIT: Final = "jobs/runs/sql/admit.sql"
CALENDARS: Final = "jobs/calendars/changes.py"
GATING: Final = "tests/jobs/runs/test_gate.py::test_"
CLOSING: Final = "tests/jobs/runs/test_closing.py::test_"
APPROVING: Final = "tests/jobs/calendars/test_approvals.py::test_"
EDITS: Final = "tests/jobs/calendars/test_windows.py::test_"
OVERRIDING: Final = "tests/jobs/runs/test_override.py::test_"
UNKEPT: Final = "tests/jobs/runs/test_ephemeral.py::test_"

ADMITTING: Final = (
    Mutation(
        "an admission outside its windows is refused",
        "G14",
        ADMIT,
        "WHEN NOT coalesce(now.at <= gate.until - jobs_needed(l.policy), applying.ids IS NULL)",
        "WHEN false",
        (
            f"{GATING}an_admission_outside_is_refused_whatever_the_queue_says",
            f"{GATING}nothing_starts_within_the_cut_off",
            f"{GATING}an_admission_waits_for_a_change_and_sees_it",
            f"{GATING}what_a_change_closes_admits_nothing_from_its_commit_on",
        ),
        is_quick=True,
    ),
    Mutation(
        "an admission reads the clock when it has waited, and not before",
        "G14",
        ADMIT,
        "SELECT clock_timestamp() AS at FROM (SELECT count(*) FROM locked) AS after_the_locks",
        "SELECT now() AS at FROM (SELECT count(*) FROM locked) AS after_the_locks",
        (f"{GATING}an_admission_that_waited_past_the_close_admits_nothing",),
    ),
    Mutation(
        "an admission waits for who changes its owner's calendars",
        "G14",
        "jobs/runs/sql/lock_limits.sql",
        "CASE WHEN o.calendar_version > 0 THEN o.slug END",
        "NULL",
        (f"{GATING}an_admission_waits_for_a_change_and_sees_it",),
    ),
    Mutation(
        "a change waits for admissions of its owners",
        "G14",
        CALENDARS,
        "sql.query(_ALONE, [sorted(owner_ids)])",
        "pass",
        (f"{GATING}a_change_waits_for_admissions_of_its_owners",),
    ),
    Mutation(
        "without history, too, nothing starts outside its windows",
        "G14",
        "jobs/runs/sql/admit_ephemeral.sql",
        "THEN 'window'",
        "THEN ''",
        (
            f"{UNKEPT}what_comes_outside_its_windows_is_recorded",
            f"{UNKEPT}what_does_not_fit_is_recorded_too",
        ),
    ),
    Mutation(
        "what its windows keep from a job without history is recorded",
        "G12",
        "jobs/runs/ephemeral.py",
        'sql.run("runs/record_missed_window", given)',
        "pass",
        (f"{UNKEPT}what_comes_outside_its_windows_is_recorded",),
        fails_with="ValueError",
    ),
    Mutation(
        "a calendar's last window is not removed",
        "G14",
        "jobs/calendars/changes.py",
        "if had_windows and not _has_windows(locked):",
        "if False:",
        ("tests/jobs/calendars/test_windows.py::test_the_last_window_is_not_removed",),
        fails_with="DID NOT RAISE",
    ),
    Mutation(
        "a window that is required and gone is missed at the admission",
        "G14",
        ADMIT,
        "OR l.window_policy = 'required' AND coalesce(applying.ids, '{}') = '{}'",
        "",
        (f"{GATING}a_required_window_is_asked_for_at_the_admission_too",),
    ),
)

AGREEING: Final = (
    Mutation(
        "an approval is of the window as it was",
        "approval",
        "jobs/calendars/hours.py",
        "if decision.revision == window.revision",
        "if True",
        (f"{EDITS}a_change_that_may_open_more_needs_a_new_approval",),
    ),
    Mutation(
        "a material change needs a new approval",
        "approval",
        "jobs/calendars/windows.py",
        "window.revision += 1",
        "pass",
        (f"{EDITS}a_change_that_may_open_more_needs_a_new_approval",),
    ),
    Mutation(
        "only what narrows a window keeps its approval",
        "approval",
        "jobs/calendars/windows.py",
        "if before.approved and only_narrows(before, safe_entry_of(window)):",
        "if before.approved:",
        (f"{EDITS}a_change_that_may_open_more_needs_a_new_approval",),
    ),
    Mutation(
        "a window that starts later opens no occurrence that was revoked",
        "approval",
        "jobs/windows/narrowing.py",
        "if approved and (len(approved) > 1 or approved[0].start > _FIRST):",
        "if False:",
        (f"{EDITS}one_occurrence_stays_approved_or_revoked_when_a_window_is_narrowed",),
    ),
    Mutation(
        "who asked for a window does not approve it",
        "four eyes",
        "jobs/calendars/approvals.py",
        "decision is Decision.APPROVED and _is_own(as_it_is, actor)",
        "False",
        (f"{APPROVING}who_asked_does_not_approve",),
        fails_with="DID NOT RAISE",
    ),
    Mutation(
        "nobody overrides without a reason",
        "override",
        "jobs/runs/override.py",
        "if not reason.strip():",
        "if False:",
        (f"{OVERRIDING}without_a_reason_nothing_is_overridden",),
        fails_with="DID NOT RAISE",
    ),
    Mutation(
        "what was rolled back is not kept of a calendar",
        "G14",
        "jobs/calendars/hours.py",
        "xmin::text AS written",
        "'' AS written",
        ("tests/jobs/calendars/test_hours.py::test_what_was_rolled_back_is_not_kept",),
    ),
    Mutation(
        "a calendar that nobody has changed yet has openings when it is attached",
        "G14",
        CALENDARS,
        "if locked.computed_until is None:",
        "if False:",
        (f"{CLOSING}what_may_run_on_does",),
    ),
)

CLOSES: Final = (
    Mutation(
        "what runs is stopped before what waits is gated",
        "end behaviour",
        "jobs/runs/closing.py",
        '                close_runs(row["id"])',
        "                pass",
        (
            f"{CLOSING}what_runs_is_stopped_by_a_freeze",
            f"{CLOSING}what_runs_is_stopped_before_what_waits_is_gated",
        ),
    ),
    Mutation(
        "what runs is stopped while a round promotes what is due",
        "end behaviour",
        "jobs/system/promotion.py",
        "        total += found\n        watch.check()\n",
        "        total += found\n",
        (f"{CLOSING}what_runs_is_stopped_within_a_round_that_is_busy",),
    ),
    Mutation(
        "a promotion gates for a second and no longer",
        "end behaviour",
        "jobs/runs/gate.py",
        "if time.monotonic() >= until:",
        "if False:",
        (f"{GATING}a_promotion_gates_for_a_second_and_the_next_goes_on",),
    ),
    Mutation(
        "an attempt is stopped only earlier than it was told",
        "end behaviour",
        "jobs/runs/sql/set_stop_at.sql",
        "CASE WHEN ends.at < coalesce(a.closes_at, 'infinity') THEN ends.at END",
        "ends.at",
        (f"{CLOSING}a_change_that_takes_nothing_from_it_stops_nothing",),
    ),
    Mutation(
        "the next attempt has a stop of its own",
        "end behaviour",
        ADMIT,
        "stop_at = CASE j.verdict WHEN '' THEN NULL ELSE r.stop_at END,",
        "",
        (f"{CLOSING}its_next_attempt_has_a_stop_of_its_own",),
    ),
    Mutation(
        "what was overridden goes on",
        "override",
        "jobs/runs/sql/set_stop_at.sql",
        "AS ends ON a.window_policy <> 'overridden'",
        "AS ends ON true",
        (f"{CLOSING}what_was_overridden_goes_on",),
    ),
)

ROWS: Final = (*ADMITTING, *AGREEING, *CLOSES)
