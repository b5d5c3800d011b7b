"""Every event that jobs logs. `docs/operate/logs.md` is made from it."""

from __future__ import annotations

from typing import Final

from fleet import Event

# --- submits and hints ---------------------------------------------------------------------
HINTS_LEFT: Final = Event.warning(
    "hints left in the outbox ({count}): {error}",
    "Redis does not answer. No run is lost.",
)
HINTS_NOT_WITHDRAWN: Final = Event.warning(
    "hints of cancelled runs are left to the workers: {error}",
    "Redis does not answer. No run is lost.",
)
CELERY_NOT_NOTIFIED: Final = Event.error(
    "could not tell Celery that run {run_id} ended",
    "A chord or callback waits for this end. The sweep repeats it for an hour.",
)
CALLBACKS_UNREADABLE: Final = Event.warning(
    "the callbacks of run {run_id} cannot be called: {error}",
    "Is a key missing?",
)
UNBLOCKING_FAILED: Final = Event.error(
    "runs that wait for a cap or a lock are left to the sweep",
    "Runs that wait for a cap or a lock start later. See the traceback.",
)
ROLLOUT_STOPPED: Final = Event.warning(
    "the rollout of submission {submission} is stopped: {reason}",
    "More runs of a wave have failed than its limit. Nothing of it starts until it is resumed.",
)
ROLLOUT_LEFT: Final = Event.error(
    "rollouts whose runs have failed are left to the next round",
    "A rollout stops up to a second later. See the traceback.",
)
PAYLOADS_UNREADABLE: Final = Event.error(
    "runs with unreadable payloads are left to a rescue ({count})",
    "Is a key missing?",
)
OUTCOME_UNREADABLE: Final = Event.error(
    "the stored outcome of run {run_id} cannot be read",
    "Celery's row of the result was changed or damaged.",
)
FOREIGN_HINT: Final = Event.warning(
    "a hint names another owner than its job {job}: {owner}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
EPHEMERAL_RUN_WAITS: Final = Event.warning(
    "run {run_id} of job {job} waits: encryption key {key} is missing",
    "Give this worker the key, or run `manage.py secrets reencrypt` where it is.",
)
EPHEMERAL_RUN_UNREADABLE: Final = Event.error(
    "run {run_id} of job {job} cannot be read",
    "The job was changed by raw SQL, or a key is missing. The run ends.",
)

# --- running tasks -------------------------------------------------------------------------
PROGRESS_NOT_WRITTEN: Final = Event.warning(
    "the progress of run {run_id} is not written yet: {error}",
    "PostgreSQL does not answer, or the row is locked. The task continues.",
)

RUN_LOG_NOT_WRITTEN: Final = Event.warning(
    "lines of run {run_id} are not written yet, or are lost: {error}",
    "PostgreSQL does not answer, or refuses a statement. The task continues; a gap in its log is"
    " named.",
)

# --- the system worker ---------------------------------------------------------------------
RUNS_RESCUED: Final = Event.warning(
    "rescued runs of lost workers ({count})",
    "A worker was killed, or lost PostgreSQL for longer than its lease.",
)
QUEUES_LEFT_TO_SWEEP: Final = Event.warning(
    "the sweep will fill the queues that were emptied: {error}",
    "Redis does not answer. No run is lost.",
)
HINTS_REPUBLISHED: Final = Event.warning(
    "the broker had no hints, because it is new or was emptied: published queued runs ({count})",
    "Redis was emptied, restored or lost keys. No durable run is lost.",
)
QUEUE_HAD_LOST_HINTS: Final = Event.warning(
    "queue {queue} had lost hints: published again ({count})",
    "Redis was emptied, restored or lost keys. No durable run is lost.",
)
SETTINGS_LEFT_TO_SWEEP: Final = Event.warning(
    "the sweep will send the settings of {owners}: {error}",
    "Redis does not answer. No run is lost.",
)
CALL_REFUSED: Final = Event.warning(
    "refused {task} of {owner} ({call}): {error}",
    "A message that changes jobs has an error. Its sender finds the answer by the call's id.",
)
OLD_RUNS_STAY: Final = Event.warning(
    "old runs stay: {error}",
    "Retention could not remove or archive them. Correct what the line says.",
)
HISTORY_REMOVED: Final = Event.info(
    "removed old history: {what}",
    "Nothing to do.",
)

LISTENER_REMOVED: Final = Event.warning(
    "ends of runs are no longer recorded for {listener}: it took none for {days} days",
    "The code of this listener is gone, or no system worker has run.",
)
HOOK_FAILED: Final = Event.warning(
    "hook {hook} failed for {what} (failure {failures} of {most}), and is called again: {error}",
    "A hook of your project raised an error; see the traceback.",
)
HOOK_GIVEN_UP: Final = Event.error(
    "hook {hook} failed for {what} {failures} times, and is not called again: {error}",
    "A hook of your project raised an error ten times. Correct it, and do its work.",
)
HOOK_GONE: Final = Event.warning(
    "hook {hook} is no longer registered: {count} calls are dropped",
    "The system worker does not import it. If it was renamed, do the work of these calls.",
)

RUN_UNREADABLE: Final = Event.error(
    "run {run_id} ends as {state}: its row cannot be read: {error}",
    "Raw SQL has changed the row. Correct it.",
)
ROW_LEFT_OUT: Final = Event.error(
    "{row} is left out, because its row cannot be read: {error}",
    "Raw SQL has changed the row. Correct it.",
)

# --- jobs and calendars --------------------------------------------------------------------
JOB_NOT_CAUGHT_UP: Final = Event.error(
    "job {job} has a broken schedule: it is not caught up",
    "Raw SQL has changed the row. Correct it.",
)
PAUSE_NOT_RECORDED: Final = Event.error(
    "job {job} has a broken schedule: its pause is not recorded",
    "Raw SQL has changed the row. Correct it.",
)
CRON_BROKEN: Final = Event.error(
    "jobs of the cron expression {cron!r} in zone {zone!r} are not due: {error}",
    "Raw SQL has changed the row. Correct it.",
)
BACKFILL_BROKEN: Final = Event.error(
    "backfill {backfill} ends: the schedule of its job is broken",
    "Raw SQL has changed the job. Correct its schedule, and request the backfill again.",
)
CALENDAR_TOO_LARGE: Final = Event.error(
    "calendar {calendar}: more than {most} openings in 62 days",
    "Raw SQL has changed the row. Correct it.",
)
WINDOW_BROKEN: Final = Event.error(
    "window {window} of calendar {calendar} cannot be read",
    "Raw SQL has changed the row. Correct it.",
)

# --- beat ----------------------------------------------------------------------------------
BEAT_ENTRY_BROKEN: Final = Event.error(
    "beat: {entry} has no schedule that can be followed",
    "Correct the PeriodicTask in the admin.",
)
BEAT_ENTRIES_MADE: Final = Event.warning(
    "beat: made entries of Fairshift that were missing: {entries}",
    "Their PeriodicTasks were deleted, as `manage.py flush` does. To stop one, disable it.",
)
BEAT_WAITS_FOR_DATABASE: Final = Event.warning(
    "beat: waits for PostgreSQL: {error}",
    "PostgreSQL does not answer. No run is lost.",
)
BEAT_INBOX_FULL: Final = Event.warning(
    "beat: {count} messages wait in {queue}: is no system worker there?",
    "Start a system worker, or another one.",
)
BEAT_WRITES_LATER: Final = Event.warning(
    "beat: writes last runs later: {error}",
    "PostgreSQL does not answer. No run is lost.",
)
BEAT_LEASE_NOT_RELEASED: Final = Event.warning(
    "beat: the lease is not given up: {error}",
    "PostgreSQL does not answer. No run is lost.",
)

# --- webhooks and mails --------------------------------------------------------------------
WEBHOOK_DISABLED: Final = Event.warning(
    "webhook {endpoint} is disabled: {reason}",
    "Mend the receiver, and enable the webhook again.",
)
INTEREST_STOPPED: Final = Event.warning(
    "{kind} {id} is switched off: {reason}",
    "The maker of a webhook or mail may not see the runs any more. Enable it again.",
)
NOTICES_LEFT: Final = Event.warning(
    "messages for webhooks and mails are left for a minute ({count}): {error}",
    "Redis does not answer. No run is lost.",
)
MAIL_FAILED: Final = Event.warning(
    "a mail of subscription {subscription} was not sent (failure {failures}): {error}",
    "Is Django's mail set up, and does its server answer?",
)
MAIL_GIVEN_UP: Final = Event.error(
    "a mail of subscription {subscription} is dropped after {failures} failures: {error}",
    "Is Django's mail set up, and does its server answer?",
)

# --- metrics, pages and API -----------------------------------------------------------------
METRICS_WITHOUT_DATABASE: Final = Event.warning(
    "metrics without PostgreSQL: {error}",
    "`fairshift_up` names the server that does not answer.",
)
METRICS_WITHOUT_BROKER: Final = Event.warning(
    "metrics without Redis: {error}",
    "`fairshift_up` names the server that does not answer.",
)
ROW_UNREADABLE: Final = Event.warning(
    "{part} of {row} cannot be shown",
    "Raw SQL has changed the row, or a key is missing.",
)
REQUEST_FAILED: Final = Event.error(
    "{method} {path} failed",
    "A fault of Fairshift: the caller has the answer 500. Report the traceback.",
)

Event.name_all(globals())
