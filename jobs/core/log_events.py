"""Every event that jobs logs. `docs/operate/logs.md` is made from it."""

from __future__ import annotations

from logging import ERROR, INFO, WARNING
from typing import Final

from fleet import Event

# --- submits and hints ---------------------------------------------------------------------
HINTS_LEFT: Final = Event(
    "hints_left",
    WARNING,
    "hints left in the outbox ({count}): {error}",
    "Redis does not answer. No run is lost.",
)
HINTS_NOT_WITHDRAWN: Final = Event(
    "hints_not_withdrawn",
    WARNING,
    "hints of cancelled runs are left to the workers: {error}",
    "Redis does not answer. No run is lost.",
)
CELERY_NOT_NOTIFIED: Final = Event(
    "celery_not_notified",
    ERROR,
    "could not tell Celery that run {run_id} ended",
    "A chord or callback waits for this end. The sweep repeats it for an hour.",
)
CALLBACKS_UNREADABLE: Final = Event(
    "callbacks_unreadable",
    WARNING,
    "the callbacks of run {run_id} cannot be called: {error}",
    "Is a key missing?",
)
UNBLOCKING_FAILED: Final = Event(
    "unblocking_failed",
    ERROR,
    "runs that wait for a cap or a lock are left to the sweep",
    "Runs that wait for a cap or a lock start later. See the traceback.",
)
ROLLOUT_STOPPED: Final = Event(
    "rollout_stopped",
    WARNING,
    "the rollout of submission {submission} is stopped: {reason}",
    "More runs of a wave have failed than its limit. Nothing of it starts until it is resumed.",
)
ROLLOUT_LEFT: Final = Event(
    "rollout_left",
    ERROR,
    "rollouts whose runs have failed are left to the next round",
    "A rollout stops up to a second later. See the traceback.",
)
PAYLOADS_UNREADABLE: Final = Event(
    "payloads_unreadable",
    ERROR,
    "runs with unreadable payloads are left to a rescue ({count})",
    "Is a key missing?",
)
OUTCOME_UNREADABLE: Final = Event(
    "outcome_unreadable",
    ERROR,
    "the stored outcome of run {run_id} cannot be read",
    "Celery's row of the result was changed or damaged.",
)
FOREIGN_HINT: Final = Event(
    "foreign_hint",
    WARNING,
    "a hint names another owner than its job {job}: {owner}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
EPHEMERAL_RUN_WAITS: Final = Event(
    "ephemeral_run_waits",
    WARNING,
    "run {run_id} of job {job} waits: encryption key {key} is missing",
    "Give this worker the key, or run `manage.py secrets reencrypt` where it is.",
)
EPHEMERAL_RUN_UNREADABLE: Final = Event(
    "ephemeral_run_unreadable",
    ERROR,
    "run {run_id} of job {job} cannot be read",
    "The job was changed by raw SQL, or a key is missing. The run ends.",
)

# --- running tasks -------------------------------------------------------------------------
PROGRESS_NOT_WRITTEN: Final = Event(
    "progress_not_written",
    WARNING,
    "the progress of run {run_id} is not written yet: {error}",
    "PostgreSQL does not answer, or the row is locked. The task continues.",
)

RUN_LOG_NOT_WRITTEN: Final = Event(
    "run_log_not_written",
    WARNING,
    "lines of run {run_id} are not written yet, or are lost: {error}",
    "PostgreSQL does not answer, or refuses a statement. The task continues; a gap in its log is"
    " named.",
)

# --- the system worker ---------------------------------------------------------------------
RUNS_RESCUED: Final = Event(
    "runs_rescued",
    WARNING,
    "rescued runs of lost workers ({count})",
    "A worker was killed, or lost PostgreSQL for longer than its lease.",
)
QUEUES_LEFT_TO_SWEEP: Final = Event(
    "queues_left_to_sweep",
    WARNING,
    "the sweep will fill the queues that were emptied: {error}",
    "Redis does not answer. No run is lost.",
)
HINTS_REPUBLISHED: Final = Event(
    "hints_republished",
    WARNING,
    "the broker had no hints, because it is new or was emptied: published queued runs ({count})",
    "Redis was emptied, restored or lost keys. No durable run is lost.",
)
QUEUE_HAD_LOST_HINTS: Final = Event(
    "queue_had_lost_hints",
    WARNING,
    "queue {queue} had lost hints: published again ({count})",
    "Redis was emptied, restored or lost keys. No durable run is lost.",
)
SETTINGS_LEFT_TO_SWEEP: Final = Event(
    "settings_left_to_sweep",
    WARNING,
    "the sweep will send the settings of {owners}: {error}",
    "Redis does not answer. No run is lost.",
)
CALL_REFUSED: Final = Event(
    "call_refused",
    WARNING,
    "refused {task} of {owner} ({call}): {error}",
    "A message that changes jobs has an error. Its sender finds the answer by the call's id.",
)
OLD_RUNS_STAY: Final = Event(
    "old_runs_stay",
    WARNING,
    "old runs stay: {error}",
    "Retention could not remove or archive them. Correct what the line says.",
)
HISTORY_REMOVED: Final = Event(
    "history_removed",
    INFO,
    "removed old history: {what}",
    "Nothing to do.",
)

LISTENER_REMOVED: Final = Event(
    "listener_removed",
    WARNING,
    "ends of runs are no longer recorded for {listener}: it took none for {days} days",
    "The code of this listener is gone, or no system worker has run.",
)
HOOK_FAILED: Final = Event(
    "hook_failed",
    WARNING,
    "hook {hook} failed for {what} (failure {failures} of {most}), and is called again: {error}",
    "A hook of your project raised an error; see the traceback.",
)
HOOK_GIVEN_UP: Final = Event(
    "hook_given_up",
    ERROR,
    "hook {hook} failed for {what} {failures} times, and is not called again: {error}",
    "A hook of your project raised an error ten times. Correct it, and do its work.",
)
HOOK_GONE: Final = Event(
    "hook_gone",
    WARNING,
    "hook {hook} is no longer registered: {count} calls are dropped",
    "The system worker does not import it. If it was renamed, do the work of these calls.",
)

RUN_UNREADABLE: Final = Event(
    "run_unreadable",
    ERROR,
    "run {run_id} ends as {state}: its row cannot be read: {error}",
    "Raw SQL has changed the row. Correct it.",
)
ROW_LEFT_OUT: Final = Event(
    "row_left_out",
    ERROR,
    "{row} is left out, because its row cannot be read: {error}",
    "Raw SQL has changed the row. Correct it.",
)

# --- jobs and calendars --------------------------------------------------------------------
JOB_NOT_CAUGHT_UP: Final = Event(
    "job_not_caught_up",
    ERROR,
    "job {job} has a broken schedule: it is not caught up",
    "Raw SQL has changed the row. Correct it.",
)
PAUSE_NOT_RECORDED: Final = Event(
    "pause_not_recorded",
    ERROR,
    "job {job} has a broken schedule: its pause is not recorded",
    "Raw SQL has changed the row. Correct it.",
)
CRON_BROKEN: Final = Event(
    "cron_broken",
    ERROR,
    "jobs of the cron expression {cron!r} in zone {zone!r} are not due: {error}",
    "Raw SQL has changed the row. Correct it.",
)
BACKFILL_BROKEN: Final = Event(
    "backfill_broken",
    ERROR,
    "backfill {backfill} ends: the schedule of its job is broken",
    "Raw SQL has changed the job. Correct its schedule, and request the backfill again.",
)
CALENDAR_TOO_LARGE: Final = Event(
    "calendar_too_large",
    ERROR,
    "calendar {calendar}: more than {most} openings in 62 days",
    "Raw SQL has changed the row. Correct it.",
)
WINDOW_BROKEN: Final = Event(
    "window_broken",
    ERROR,
    "window {window} of calendar {calendar} cannot be read",
    "Raw SQL has changed the row. Correct it.",
)

# --- beat ----------------------------------------------------------------------------------
BEAT_ENTRY_BROKEN: Final = Event(
    "beat_entry_broken",
    ERROR,
    "beat: {entry} has no schedule that can be followed",
    "Correct the PeriodicTask in the admin.",
)
BEAT_ENTRIES_MADE: Final = Event(
    "beat_entries_made",
    WARNING,
    "beat: made entries of Fairshift that were missing: {entries}",
    "Their PeriodicTasks were deleted, as `manage.py flush` does. To stop one, disable it.",
)
BEAT_WAITS_FOR_DATABASE: Final = Event(
    "beat_waits_for_database",
    WARNING,
    "beat: waits for PostgreSQL: {error}",
    "PostgreSQL does not answer. No run is lost.",
)
BEAT_INBOX_FULL: Final = Event(
    "beat_inbox_full",
    WARNING,
    "beat: {count} messages wait in {queue}: is no system worker there?",
    "Start a system worker, or another one.",
)
BEAT_WRITES_LATER: Final = Event(
    "beat_writes_later",
    WARNING,
    "beat: writes last runs later: {error}",
    "PostgreSQL does not answer. No run is lost.",
)
BEAT_LEASE_NOT_RELEASED: Final = Event(
    "beat_lease_not_released",
    WARNING,
    "beat: the lease is not given up: {error}",
    "PostgreSQL does not answer. No run is lost.",
)

# --- webhooks and mails --------------------------------------------------------------------
WEBHOOK_DISABLED: Final = Event(
    "webhook_disabled",
    WARNING,
    "webhook {endpoint} is disabled: {reason}",
    "Mend the receiver, and enable the webhook again.",
)
INTEREST_STOPPED: Final = Event(
    "interest_stopped",
    WARNING,
    "{kind} {id} is switched off: {reason}",
    "The maker of a webhook or mail may not see the runs any more. Enable it again.",
)
NOTICES_LEFT: Final = Event(
    "notices_left",
    WARNING,
    "messages for webhooks and mails are left for a minute ({count}): {error}",
    "Redis does not answer. No run is lost.",
)
MAIL_FAILED: Final = Event(
    "mail_failed",
    WARNING,
    "a mail of subscription {subscription} was not sent (failure {failures}): {error}",
    "Is Django's mail set up, and does its server answer?",
)
MAIL_GIVEN_UP: Final = Event(
    "mail_given_up",
    ERROR,
    "a mail of subscription {subscription} is dropped after {failures} failures: {error}",
    "Is Django's mail set up, and does its server answer?",
)

# --- metrics, pages and API -----------------------------------------------------------------
METRICS_WITHOUT_DATABASE: Final = Event(
    "metrics_without_database",
    WARNING,
    "metrics without PostgreSQL: {error}",
    "`fairshift_up` names the server that does not answer.",
)
METRICS_WITHOUT_BROKER: Final = Event(
    "metrics_without_broker",
    WARNING,
    "metrics without Redis: {error}",
    "`fairshift_up` names the server that does not answer.",
)
ROW_UNREADABLE: Final = Event(
    "row_unreadable",
    WARNING,
    "{part} of {row} cannot be shown",
    "Raw SQL has changed the row, or a key is missing.",
)
REQUEST_FAILED: Final = Event(
    "request_failed",
    ERROR,
    "{method} {path} failed",
    "A fault of Fairshift: the caller has the answer 500. Report the traceback.",
)
