"""Guards of the recurring engine: from the pulse to the run or the record, and of what feeds it."""

from __future__ import annotations

from typing import Final

from tests.mutations.mutation import Mutation

DUE: Final = "G11"
MISSED: Final = "G12"
INBOX: Final = "inbox"
PULSE: Final = "jobs/recurring/sql/make_ticks.sql"
TICKING: Final = "jobs/recurring/tick.py"
READ_AGAIN: Final = "jobs/recurring/sql/late_commit_due.sql"
RULES: Final = "jobs/schedules/misfire.py"
READER: Final = "jobs/definitions/inbox.py"
PULSED: Final = "tests/jobs/recurring/test_pulse.py::test_"
TICKED: Final = "tests/jobs/recurring/test_tick.py::test_"
AGAIN: Final = "tests/jobs/recurring/test_late_commits.py::test_"
TRIGGERED: Final = "tests/jobs/recurring/test_trigger.py::test_"
SIFTED: Final = "tests/jobs/recurring/test_overlap.py::test_"
JUDGED: Final = "tests/jobs/recurring/test_misfire.py::test_"
DECIDED: Final = "tests/jobs/schedules/test_misfire.py::test_"
LED: Final = "tests/jobs/system/test_lease.py::test_"
READ: Final = "tests/jobs/definitions/test_inbox.py::test_"

HANDING_OUT: Final = (
    Mutation(
        "due times: the cursor moves in the statement that makes the ticks",
        DUE,
        PULSE,
        "SET slot = greatest(cursor.slot, cursor.upto), beat_at",
        "SET slot = cursor.slot, beat_at",
        (f"{PULSED}the_slots_up_to_now_are_handed_out_once",),
    ),
    Mutation(
        "due times: a clock that was set back moves the cursor nowhere",
        DUE,
        PULSE,
        "SET slot = greatest(cursor.slot, cursor.upto), beat_at",
        "SET slot = cursor.upto, beat_at",
        (f"{PULSED}a_clock_that_was_set_back_hands_nothing_out_again",),
    ),
    Mutation(
        "due times: a pulse does not wait for another",
        DUE,
        PULSE,
        "ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
        "ORDER BY id LIMIT 1 FOR UPDATE",
        (f"{PULSED}a_pulse_that_meets_another_returns",),
        fails_with="lock timeout",
    ),
    Mutation(
        "due times: the pulse does not wait for who is at a tick",
        DUE,
        PULSE,
        "FOR UPDATE OF open SKIP LOCKED",
        "FOR UPDATE OF open",
        (f"{PULSED}a_tick_that_somebody_is_at_is_not_waited_for",),
        fails_with="lock timeout",
    ),
    Mutation(
        "due times: what is older than the grace is judged",
        MISSED,
        PULSE,
        "SELECT least(greatest(slot, upto - %(grace)s), greatest(slot, upto)) AS until",
        "SELECT slot AS until",
        (f"{PULSED}what_is_older_than_the_grace_is_to_be_caught_up",),
    ),
    Mutation(
        "due times: a tick that is silent is sent again",
        DUE,
        PULSE,
        "make_interval(secs => %(patience)s)",
        "make_interval(secs => 100 * %(patience)s)",
        (f"{PULSED}a_tick_that_is_silent_is_sent_again",),
    ),
)

TRIGGERING: Final = (
    Mutation(
        "due times: a tick notes how far it is",
        DUE,
        TICKING,
        "update(after_job=due[-1].job_id, sent_at=Now())",
        "update(sent_at=Now())",
        (f"{TICKED}chunks_keep_a_jobs_due_times_together",),
    ),
    Mutation(
        "due times: a chunk is one worker's at a time",
        DUE,
        TICKING,
        "mine = Tick.objects.select_for_update(skip_locked=True)",
        "mine = Tick.objects.all()",
        (f"{TICKED}while_one_does_a_chunk_another_leaves_it",),
    ),
    Mutation(
        "due times: what another has noted is left to it",
        DUE,
        TICKING,
        "filter(pk=tick_id, done_at=None, after_job__lt=due[0].job_id)",
        "filter(pk=tick_id, done_at=None)",
        (f"{TICKED}what_another_has_noted_meanwhile_is_left_to_it",),
    ),
    Mutation(
        "due times: a tick whose hints are not out is not done",
        DUE,
        TICKING,
        "            failure = error\n",
        "            pass\n",
        (f"{TICKED}while_the_broker_is_away_rows_are_made_and_the_tick_waits",),
        fails_with="DID NOT RAISE",
    ),
    Mutation(
        "due times: a due time has one row",
        DUE,
        "jobs/recurring/sql/insert_due_runs.sql",
        "ON CONFLICT DO NOTHING",
        "",
        (f"{TRIGGERED}triggering_twice_makes_one",),
        fails_with="duplicate key",
    ),
    Mutation(
        "due times: what a tick has seen is not triggered again",
        DUE,
        READ_AGAIN,
        "    AND NOT pg_visible_in_snapshot(c.changed_xid, tick.seen)\n",
        "",
        (f"{AGAIN}what_its_tick_saw_is_not_triggered_again",),
    ),
    Mutation(
        "due times: a schedule holds from when it was written",
        DUE,
        "jobs/recurring/sql/due_intervals.sql",
        "WHERE due.effective_from <= moment.at",
        "WHERE true",
        ("tests/jobs/recurring/test_due.py::test_a_due_time_counts_between_its_bounds",),
    ),
    Mutation(
        "due times: the jobs of two ticks are judged one after the other",
        "overlap",
        "jobs/recurring/sql/lock_overlap_jobs.sql",
        "ORDER BY id\nFOR NO KEY UPDATE",
        "ORDER BY id",
        (f"{SIFTED}two_ticks_at_once_do_not_both_pass",),
    ),
    Mutation(
        "due times: what has its run or its record is not judged again",
        "overlap",
        "jobs/recurring/overlap.py",
        "if (job_id, slot) not in done:",
        "if True:",
        (f"{SIFTED}again_changes_nothing", f"{SIFTED}what_is_recorded_as_missed_is_not_run"),
    ),
)

MISSING: Final = (
    Mutation(
        "due times: what is accounted for is not judged again",
        MISSED,
        "jobs/recurring/misfire.py",
        "= without(due, known)",
        "= [due]",
        (f"{JUDGED}an_outage_in_a_pause_is_the_pause",),
    ),
    Mutation(
        "due times: what is too late is not run",
        MISSED,
        RULES,
        "return bisect_left(row, now - timedelta(seconds=rule.deadline_seconds))",
        "return 0",
        (f"{DECIDED}a_policy_says_what_is_run",),
    ),
    Mutation(
        "due times: a cap is one for all rows",
        MISSED,
        RULES,
        "left -= len(row) - first_run",
        "pass",
        (f"{DECIDED}a_span_does_not_reach_over_what_is_accounted_for",),
    ),
    Mutation(
        "due times: a span is recorded once",
        MISSED,
        "jobs/recurring/sql/record_missed.sql",
        "ON CONFLICT DO NOTHING",
        "",
        ("tests/jobs/recurring/test_missed.py::test_noting_again_changes_nothing",),
        fails_with="duplicate key",
    ),
)

LEADING: Final = (
    Mutation(
        "beats: a lease has one holder until its end",
        DUE,
        "jobs/system/sql/take_lease.sql",
        "WHERE l.holder = EXCLUDED.holder OR l.until <= clock_timestamp()",
        "WHERE true",
        (f"{LED}one_holds_a_lease_until_its_end",),
    ),
    Mutation(
        "beats: who does not hold the lease notes nothing",
        DUE,
        "jobs/system/sql/record_send.sql",
        "WHERE name = %(leader)s AND holder = %(holder)s AND until > clock_timestamp()",
        "WHERE name = %(leader)s",
        (f"{LED}who_does_not_lead_notes_nothing",),
        fails_with="DID NOT RAISE",
    ),
    Mutation(
        "beats: what is sent is not noted again",
        DUE,
        "jobs/system/sql/record_send.sql",
        "WHERE s.due_at < EXCLUDED.due_at OR (s.task_id = EXCLUDED.task_id AND s.sent_at IS NULL)",
        "WHERE true",
        (f"{LED}what_is_sent_is_not_noted_again",),
    ),
    Mutation(
        "beats: an entry that is off is not sent late",
        DUE,
        "jobs/system/lease.py",
        "        sql.query(_DROP)\n",
        "",
        (f"{LED}an_entry_that_is_off_is_not_sent_late",),
    ),
    Mutation(
        "beats: one that was frozen asks for the lease before it sends",
        DUE,
        "fleet/beat/scheduler.py",
        "return time.monotonic() < self._led_until - MARGIN_SECONDS",
        "return self._led_until > 0.0",
        (
            "tests/fleet/beat/test_scheduler.py::test_one_that_is_frozen_before_a_publish_does_not_publish",
        ),
    ),
)

READING: Final = (
    Mutation(
        "inbox: one reads at a time",
        INBOX,
        READER,
        "mark = InboxMark.objects.select_for_update().get(name=name)",
        "mark = InboxMark.objects.get(name=name)",
        (f"{READ}two_readers_do_not_overtake_each_other",),
    ),
    Mutation(
        "inbox: what is done and was not dropped is not done again",
        INBOX,
        READER,
        "inbox.calls(_after_mark(raws, mark.digest))",
        "inbox.calls(raws)",
        (f"{READ}what_is_committed_is_not_done_again",),
    ),
    Mutation(
        "inbox: a call stays in Redis until it is committed",
        INBOX,
        READER,
        "        refused = _apply(calls)\n",
        "        refused = _apply(calls)\n"
        "        with dispatch.broker().client(timeout=timeout) as client:\n"
        "            inbox.drop(client, name, raws)\n",
        (f"{READ}a_call_stays_until_it_is_committed",),
    ),
    Mutation(
        "inbox: a job that was deleted is made anew",
        INBOX,
        READER,
        "spec is not None and jobs.get(job_key, spec) is None",
        "spec is not None and False",
        (f"{READ}a_job_that_was_deleted_is_made_anew",),
    ),
)

ROWS: Final = (*HANDING_OUT, *TRIGGERING, *MISSING, *LEADING, *READING)
