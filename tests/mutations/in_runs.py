"""Guards of admission, recording and publishing, in `jobs/runs/sql`."""

from typing import Final

from tests.mutations.mutation import broken

GATE: Final = "tests/fleet/worker/test_gate.py::test_"
SINGLE: Final = "tests/jobs/runs/test_single.py::test_"
GATE_EPHEMERAL: Final = "tests/fleet/worker/test_gate_ephemeral.py::test_"
UNKNOWN_TASKS: Final = "tests/fleet/worker/test_unknown_tasks.py::test_"
ADMISSION: Final = "tests/jobs/runs/test_admission.py::test_"
CANCELLATION: Final = "tests/jobs/runs/test_cancellation.py::test_"
CLOSING: Final = "tests/jobs/runs/test_closing.py::test_"
DISPATCH: Final = "tests/jobs/runs/test_dispatch.py::test_"
EPHEMERAL: Final = "tests/jobs/runs/test_ephemeral.py::test_"
RUNS_GATE: Final = "tests/jobs/runs/test_gate.py::test_"
RECORDING: Final = "tests/jobs/runs/test_recording.py::test_"
UNBLOCKING: Final = "tests/jobs/runs/test_unblocking.py::test_"
ROLLOUTS: Final = "tests/jobs/rollouts/test_rounds.py::test_"
RESCUE: Final = "tests/jobs/system/test_rescue.py::test_"
ENCRYPTION: Final = "tests/jobs/test_encryption.py::test_"
REENCRYPTION: Final = "tests/jobs/system/test_reencryption.py::test_"

ROWS: Final = (
    broken(
        "what is limited is decided under its locks",
        "G16",
        f"{ADMISSION}limits_that_come_and_go_are_met",
        instead="WHERE o.calendar_version = 0 AND l.lock_key = '' AND l.window_policy = ''",
    ),
    broken(
        "a run of a rollout is decided under its locks",
        "G30",
        f"{ROLLOUTS}no_run_starts_before_its_wave[retry]",
    ),
    broken(
        "a run of a paused owner is not admitted",
        "may it run now",
        f"{ADMISSION}a_paused_owner_s_runs_wait",
    ),
    broken(
        "a run past its deadline is not admitted",
        "G14",
        f"{ADMISSION}past_its_deadline_a_run_expires",
    ),
    broken(
        "a run whose key is missing is not admitted",
        "G1",
        f"{ENCRYPTION}a_run_whose_key_is_missing_waits_for_it",
    ),
    broken(
        "time in ids comes from PostgreSQL",
        "G19",
        f"{SINGLE}ids_rise_with_time",
        instead="('000000000000' || %(tail)s::text)::uuid",
    ),
    broken(
        "where calendars apply, they decide the first state of a run",
        "G14",
        f"{SINGLE}where_calendars_apply_the_gate_decides",
    ),
    broken("a key makes one run", "G10", f"{SINGLE}a_key_makes_one_run"),
    broken(
        "only what is queued is admitted",
        "G3, G17",
        f"{CANCELLATION}what_waits_is_cancelled_and_never_starts",
        instead="WHERE r.id = h.id AND r.task = h.task",
        is_quick=True,
    ),
    broken(
        "a hint whose row is held is given back, not dropped",
        "G1",
        f"{ADMISSION}a_row_that_somebody_holds_is_busy",
        instead=") THEN 'gone'",
    ),
    broken(
        "the row names the task",
        "G8",
        f"{ADMISSION}a_hint_that_names_another_task_is_gone",
        instead="WHERE r.id = h.id AND r.state || '' = 'queued'",
    ),
    broken(
        "a hint from before a change of its run is stale",
        "G8",
        "tests/jobs/runs/test_changing.py::test_another_queue_takes_the_hint_along",
    ),
    broken(
        "a worker that was frozen past its lease admits nothing",
        "G3",
        f"{ADMISSION}a_stale_worker_admits_nothing",
    ),
    broken(
        "a paused owner's runs wait",
        "may it run now",
        f"{ADMISSION}a_paused_owner_s_runs_wait",
        instead="WHEN false",
    ),
    broken(
        "a batch fills a cap and no more",
        "G16",
        f"{ADMISSION}a_cap_holds_against_workers_at_once",
        instead="PARTITION BY g.owner_id ORDER BY g.priority DESC, g.id) > g.most + 1 THEN 'cap'",
    ),
    broken(
        "what is admitted and not yet started counts under a cap",
        "G16",
        f"{ADMISSION}a_cap_holds_against_workers_at_once",
        instead="WHERE a.owner_id = o.id AND a.state IN ('running', 'cancelling')) AS room",
    ),
    broken(
        "who counts under a cap waits for who counts before it",
        "G16",
        f"{ADMISSION}a_deadline_that_passes_behind_a_cap_is_kept",
        instead="ELSE NULL END",
    ),
    broken(
        "a run waits for a lock that another run holds",
        "G16",
        f"{ADMISSION}a_lock_lets_one_run_at_a_time",
        instead="false",
        fails_with="MultipleObjectsReturned",
    ),
    broken(
        "of one batch one run gets a lock",
        "G16",
        f"{ADMISSION}a_lock_lets_one_run_at_a_time",
        fails_with="MultipleObjectsReturned",
    ),
    broken(
        "past its deadline a run expires",
        "G14",
        f"{ADMISSION}past_its_deadline_a_run_expires",
        instead="WHEN false THEN 'expired'",
    ),
    broken(
        "a token is handed out once",
        "G4",
        f"{RECORDING}an_older_token_is_fenced_off",
        f"{RESCUE}the_second_attempt_comes_at_once",
        instead="token = greatest(r.token, (j.verdict = '')::int),",
    ),
    broken(
        "an admission spends an attempt",
        "G7",
        f"{ADMISSION}an_admission_brings_token_payload_and_context",
        instead="attempt_count = r.attempt_count,",
    ),
    broken(
        "a row that has just changed is admitted the next time",
        "G1",
        f"{ADMISSION}a_row_that_somebody_has_just_changed_is_busy",
        instead="WHERE l.place IS NULL",
    ),
    broken(
        "only the newest token writes",
        "G4",
        f"{RECORDING}an_older_token_is_fenced_off",
        f"{RECORDING}tokens_of_the_future_and_unknown_runs_are_nobody_s",
        f"{RESCUE}the_second_attempt_comes_at_once",
        instead="WHERE r.id = p.id",
    ),
    broken(
        "what has ended is not written again",
        "G18",
        f"{RECORDING}a_repeated_batch_is_harmless",
        instead="AND true",
        fails_with="InternalError",
    ),
    broken(
        "what has started is not given back",
        "G3",
        f"{RECORDING}what_has_started_cannot_be_given_back",
        instead="OR p.started_age IS NULL)",
    ),
    broken(
        "what ends while it is cancelled is cancelled",
        "G17",
        f"{RECORDING}what_ends_while_it_is_cancelled_is_cancelled",
    ),
    broken(
        "a worker's ages are clipped",
        "G19",
        f"{RECORDING}a_worker_s_clock_cannot_turn_history_around",
        instead="now.at - make_interval(secs => l.started_age) AS started_at,",
    ),
    broken(
        "what is given back has spent no attempt",
        "G20",
        f"{RECORDING}what_is_given_back_has_spent_no_attempt",
        instead="attempt_count = r.attempt_count - (false OR j.cause = 'not begun')::int,",
    ),
    broken(
        "what is given back keeps its place",
        "G20",
        f"{RECORDING}what_is_given_back_keeps_its_place",
    ),
    broken(
        "a run whose worker was lost keeps its place",
        "G5",
        f"{RESCUE}a_run_whose_worker_was_lost_keeps_its_place",
    ),
    broken(
        "an admission outside its windows is refused",
        "G14",
        f"{RUNS_GATE}an_admission_outside_is_refused_whatever_the_queue_says",
        f"{RUNS_GATE}an_admission_waits_for_a_change_and_sees_it",
        f"{RUNS_GATE}what_a_change_closes_admits_nothing_from_its_commit_on",
        instead="WHEN false",
    ),
    broken(
        "an admission reads the clock when it has waited, and not before",
        "G14",
        f"{RUNS_GATE}an_admission_that_waited_past_the_close_admits_nothing",
        instead="SELECT now() AS at FROM (SELECT count(*) FROM locked) AS after_the_locks",
    ),
    broken(
        "a run does not start before its wave, nor while its rollout is stopped",
        "G30",
        f"{ROLLOUTS}no_run_starts_before_its_wave[retry]",
        f"{ROLLOUTS}nothing_starts_after_a_stop",
        instead="WHEN false THEN 'wave'",
    ),
    broken(
        "an admission waits for who stops its rollout",
        "G30",
        f"{ROLLOUTS}an_admission_waits_for_a_stop_and_sees_it",
        instead="(NULL, NULL, 1726, NULL),",
    ),
    broken("a calendar does not release a wave", "G30", f"{ROLLOUTS}a_calendar_releases_no_wave"),
    broken(
        "an admission waits for who changes its owner's calendars",
        "G14",
        f"{RUNS_GATE}an_admission_waits_for_a_change_and_sees_it",
        instead="(NULL::bigint, NULL::text, 1722, NULL),",
    ),
    broken(
        "without history, too, nothing starts outside its windows",
        "G14",
        f"{EPHEMERAL}what_comes_outside_its_windows_is_recorded",
        f"{EPHEMERAL}what_does_not_fit_is_recorded_too",
        instead="WHEN NOT coalesce(now.at <= gate.until - needed.span, applying.ids IS NULL)"
        " THEN ''",
    ),
    broken(
        "the stop time of an attempt only moves earlier",
        "end behaviour",
        f"{CLOSING}a_change_that_takes_nothing_from_it_stops_nothing",
        instead="SELECT a.id, ends.at AS stop_at",
    ),
    broken(
        "an attempt that did nothing is not spent",
        "G1",
        f"{GATE}a_last_attempt_whose_moment_has_passed_is_tried_again",
        instead="attempt_count = r.attempt_count - (j.after = 'queued')::int,",
    ),
    broken(
        "only queued runs are published",
        "G17",
        f"{DISPATCH}only_queued_runs_are_published",
        instead="WHERE r.id = ANY(%(ids)s)",
    ),
    broken(
        "a run waits for its task only where no live worker knows it",
        "G1",
        f"{UNKNOWN_TASKS}a_hint_goes_back_to_the_queue_when_another_worker_knows_its_task",
    ),
    broken(
        "the sweep frees runs of a task that a worker of their queue knows, and no others",
        "G1",
        f"{UNBLOCKING}a_run_that_waits_for_its_task_is_freed_by_a_worker_that_knows_it",
        instead="AND (true",
    ),
    broken(
        "without history: a paused job has no run",
        "history none",
        f"{EPHEMERAL}a_job_that_wants_no_such_run_has_none",
        instead="WHEN j.id IS NULL OR NOT j.enabled THEN 'gone'",
    ),
    broken(
        "an attempt that is out of date writes no log",
        "G3",
        "tests/jobs/catalog/test_run_log.py::TestWritten::test_a_stale_attempt_writes_nothing",
        instead="WHERE id = %(id)s AND state || '' IN ('admitted', 'running', 'cancelling')",
    ),
    broken(
        "an attempt that is out of date records no log",
        "G3",
        "tests/jobs/catalog/test_run_log.py::TestWritten::test_a_stale_attempt_writes_nothing",
        instead="WHERE r.id = c.id AND r.state || '' IN ('admitted', 'running', 'cancelling')",
    ),
    broken(
        "without history: a job with a history needs a row",
        "G8",
        f"{EPHEMERAL}a_job_that_wants_no_such_run_has_none",
        instead="LEFT JOIN jobs_job j ON j.id = h.job_id AND j.task = h.task",
    ),
    broken(
        "without history: a paused owner's hint waits",
        "history none",
        f"{EPHEMERAL}a_paused_owner_s_hint_waits",
        f"{GATE_EPHEMERAL}a_paused_owner_s_hint_goes_back",
        instead="WHEN false",
    ),
    broken(
        "without history: a worker that was frozen past its lease starts nothing",
        "G3",
        f"{EPHEMERAL}a_worker_that_was_frozen_past_its_lease_starts_nothing",
        instead="WHEN false THEN 'busy'",
    ),
    broken(
        "the payload is encrypted for the owner of this slug",
        "G1",
        f"{ENCRYPTION}an_owner_that_is_not_what_its_object_says_is_read_anew",
        fails_with="Damaged",
    ),
    broken(
        "a run whose key is missing waits, and spends no attempt",
        "G1",
        f"{ENCRYPTION}a_run_whose_key_is_missing_waits_for_it",
        instead="WHEN false THEN CASE",
    ),
    broken(
        "a run whose key another worker has is given back for it",
        "G1",
        f"{ENCRYPTION}a_run_whose_key_another_worker_has_is_given_back",
        instead="WHEN false AND EXISTS (",
    ),
    broken(
        "the sweep frees runs whose key a worker of their queue has, and no others",
        "G1",
        f"{ENCRYPTION}a_run_whose_key_is_missing_waits_for_it",
    ),
    broken(
        "a run that has changed since is read again",
        "G1",
        f"{REENCRYPTION}a_row_that_changes_meanwhile_keeps_its_change",
        instead="WHERE r.id = ANY(%(ids)s::uuid[])",
    ),
)
