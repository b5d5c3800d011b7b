"""Guards of runs without history: of their hints, their admission, and what becomes of them."""

from __future__ import annotations

from typing import Final

from tests.mutations.mutation import Mutation

NO_HISTORY: Final = "history none"
ADMIT: Final = "jobs/runs/sql/admit_ephemeral.sql"
UNKEPT: Final = "jobs/runs/ephemeral.py"
GATE: Final = "fleet/worker/gate.py"
OUTCOMES: Final = "fleet/worker/outcomes.py"
IO_THREAD: Final = "fleet/worker/io_thread.py"
HINTS: Final = "fleet/transport/lua/hints.lua"
ADMITTED: Final = "tests/jobs/runs/test_ephemeral.py::test_"
AT_GATE: Final = "tests/fleet/worker/test_gate_ephemeral.py::test_"
AT_IO_THREAD: Final = "tests/fleet/worker/test_io_thread.py::test_"
SENT: Final = "tests/fleet/broker/test_sender.py::test_"

WANTED: Final = (f"{ADMITTED}a_job_that_wants_no_such_run_has_none",)
DEADLINE: Final = (f"{ADMITTED}what_is_past_its_deadline_does_not_start",)
BAD_ASK: Final = (f"{ADMITTED}a_bad_ask_keeps_nobody_else_from_starting",)

ADMITTING: Final = (
    Mutation(
        "without history: a job that is off has no run",
        NO_HISTORY,
        ADMIT,
        "OR NOT j.enabled ",
        "",
        WANTED,
    ),
    Mutation(
        "without history: a paused job has no run",
        NO_HISTORY,
        ADMIT,
        " OR j.paused_until > now.at THEN 'gone'",
        " THEN 'gone'",
        WANTED,
    ),
    Mutation(
        "without history: the job names the task",
        "G8",
        ADMIT,
        "AND j.task = h.task ",
        "",
        WANTED,
    ),
    Mutation(
        "without history: a job with a history needs a row",
        "G8",
        ADMIT,
        " AND j.history_policy = 'none'",
        "",
        WANTED,
    ),
    Mutation(
        "without history: what is past its deadline does not start",
        NO_HISTORY,
        ADMIT,
        "WHEN h.is_timed AND now.at >=",
        "WHEN false AND now.at >=",
        DEADLINE,
    ),
    Mutation(
        "without history: a deadline is one for the first start of what was due",
        NO_HISTORY,
        ADMIT,
        "WHEN h.is_timed AND now.at >=",
        "WHEN now.at >=",
        DEADLINE,
    ),
    Mutation(
        "without history: a paused owner's hint waits",
        NO_HISTORY,
        ADMIT,
        "WHEN o.paused_at IS NOT NULL",
        "WHEN false",
        (f"{ADMITTED}a_paused_owner_s_hint_waits", f"{AT_GATE}a_paused_owner_s_hint_goes_back"),
    ),
    Mutation(
        "without history: a worker that was frozen past its lease starts nothing",
        "G3",
        ADMIT,
        "WHEN NOT EXISTS (SELECT FROM node) THEN 'busy'",
        "WHEN false THEN 'busy'",
        (f"{ADMITTED}a_worker_that_was_frozen_past_its_lease_starts_nothing",),
    ),
    Mutation(
        "without history: the owner that is charged is the job's",
        "G15",
        UNKEPT,
        'if row["owner"] != request.owner:',
        "if False:",
        (f"{ADMITTED}a_hint_goes_to_the_account_of_its_job_s_owner",),
    ),
    Mutation(
        "without history: what cannot be a job's run ends nobody else's admission",
        "bad input",
        UNKEPT,
        "except (OverflowError, UnknownTask):",
        "except ZeroDivisionError:",
        BAD_ASK,
        fails_with="UnknownTask",
    ),
    Mutation(
        "without history: a job that cannot be read ends nobody else's admission",
        "bad input",
        UNKEPT,
        "except (FairshiftError, LookupError, ValueError, TypeError):",
        "except ZeroDivisionError:",
        BAD_ASK,
        fails_with="no key 7",
    ),
)

HOLDING: Final = (
    Mutation(
        "without history: a number that no job has is asked of nobody",
        "G8",
        "fleet/worker/admitted.py",
        "type(number) is int and least <= number < most",
        "True",
        (f"{AT_GATE}a_hint_that_no_job_can_have_is_dropped",),
    ),
    Mutation(
        "without history: a forged hint takes no durable run's place",
        "G8",
        "fleet/contract.py",
        'return run_id if is_kept else f"{run_id}:{token}"',
        "return run_id",
        (
            f"{AT_GATE}a_forged_hint_does_not_take_a_durable_run_s_place",
            f"{AT_IO_THREAD}two_attempts_of_a_run_without_a_row_are_two_asks",
            f"{ADMITTED}asks_of_both_kinds_go_each_to_its_own_door",
        ),
    ),
    Mutation(
        "without history: what did not start goes back with its own message",
        "G20",
        GATE,
        "leave = drop if held.admission.is_kept else requeue",
        "leave = drop",
        (
            f"{AT_GATE}what_has_no_slot_in_time_goes_back",
            f"{AT_GATE}a_stopping_node_gives_it_back",
        ),
        fails_with="Error",
    ),
    Mutation(
        "without history: what was handed back does not start in the place of what has come again",
        NO_HISTORY,
        GATE,
        "held.request.request_dict is not args[2]",
        'held.admission.token != facts["token"]',
        (f"{AT_GATE}what_has_no_slot_in_time_goes_back",),
    ),
    Mutation(
        "without history: a message that comes twice is not dropped",
        NO_HISTORY,
        GATE,
        "elif admission_request.key in self._held or not self._io_thread.request_admission(",
        "elif not self._io_thread.request_admission(",
        (f"{AT_GATE}a_message_that_comes_twice_waits_for_itself",),
        fails_with="ValueError",
    ),
    Mutation(
        "without history: what goes back with a lost connection is not held",
        NO_HISTORY,
        GATE,
        "if not held.in_pool and not held.admission.is_kept:",
        "if False:",
        (f"{AT_GATE}with_a_lost_connection_it_is_let_go",),
    ),
    Mutation(
        "without history: the database hears of no run that a worker holds",
        NO_HISTORY,
        GATE,
        "for key, held in list(self._held.items()) if held.admission.is_kept]",
        "for key, held in list(self._held.items())]",
        (f"{AT_GATE}it_runs_and_nothing_is_written",),
    ),
)

ENDING: Final = (
    Mutation(
        "without history: a message stays until the next attempt's is out",
        NO_HISTORY,
        OUTCOMES,
        "delay_seconds=report.delay or 0.0), then)\n",
        "delay_seconds=report.delay or 0.0), lambda: None)\n            then()\n",
        (f"{AT_GATE}its_message_stays_until_the_next_one_is_out",),
    ),
    Mutation(
        "without history: another attempt comes after its back-off",
        NO_HISTORY,
        OUTCOMES,
        "delay_seconds=report.delay or 0.0)",
        "delay_seconds=0.0)",
        (f"{AT_GATE}a_failed_try_publishes_the_next_one",),
        fails_with="ValueError",
    ),
    Mutation(
        "without history: the last failure is said",
        NO_HISTORY,
        OUTCOMES,
        "            _log_failed(held, report)\n",
        "            pass\n",
        (
            f"{AT_GATE}the_last_failure_is_said_once",
            f"{AT_GATE}what_cannot_be_applied_is_said_once",
        ),
    ),
    Mutation(
        "without history: a hint that could not be published is published again",
        NO_HISTORY,
        IO_THREAD,
        "                self._requeue_hints(hints)\n",
        "                pass\n",
        (f"{AT_IO_THREAD}a_broker_that_is_away_keeps_hints_and_nothing_else",),
    ),
    Mutation(
        "without history: a broker that is away is left alone for a moment",
        NO_HISTORY,
        IO_THREAD,
        "if self._hints and time.monotonic() < self._may_publish_at:",
        "if False:",
        (f"{AT_IO_THREAD}a_broker_that_is_away_keeps_hints_and_nothing_else",),
    ),
    Mutation(
        "without history: a flush waits for hints",
        NO_HISTORY,
        IO_THREAD,
        "is_empty = not self._reports and not self._hints",
        "is_empty = not self._reports",
        (f"{AT_IO_THREAD}flush_waits_for_every_hint",),
    ),
)

SENDING: Final = (
    Mutation(
        "without history: hints with and without a job have templates of their own",
        NO_HISTORY,
        "fleet/broker/template.py",
        "has = (hint.job is not None, bool(hint.lock))",
        "has = (False, False)",
        (f"{SENT}hints_of_one_call_keep_their_own_values",),
        fails_with="ResponseError",
    ),
    Mutation(
        "without history: a hint's lock is its owner's own",
        "G16",
        HINTS,
        "lock == '' and '' or owner .. ':' .. lock",
        "lock",
        (
            f"{SENT}hints_under_one_lock_come_one_after_the_other",
            f"{SENT}a_filled_template_is_celery_s_own_message",
        ),
    ),
    Mutation(
        "a hint that is known is not put in again",
        "G3",
        HINTS,
        "elseif known[number] or fresh[id] then",
        "elseif false then",
        (f"{SENT}the_same_hint_twice_in_one_go_is_one",),
    ),
    Mutation(
        "without history: a hint with a delay waits",
        NO_HISTORY,
        HINTS,
        "ARGV[at + 3], ARGV[at + 5]\n",
        "ARGV[at + 3], 0\n",
        (
            f"{SENT}hints_of_one_call_keep_their_own_values",
            f"{SENT}a_filled_template_is_celery_s_own_message",
        ),
    ),
)

ROWS: Final = (*ADMITTING, *HOLDING, *ENDING, *SENDING)
