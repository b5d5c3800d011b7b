"""Every event that fleet logs. `docs/operate/logs.md` is made from it."""

from __future__ import annotations

from logging import CRITICAL, ERROR, INFO, WARNING
from typing import Final

from fleet.logs import Event

# --- a worker and its queues ---------------------------------------------------------------
WORKER_DRAINS: Final = Event(
    "worker_drains",
    WARNING,
    "drains: takes no more from {queues}",
    "An operator asked for it.",
)
WORKER_TAKES_AGAIN: Final = Event(
    "worker_takes_again", WARNING, "takes again from {queues}", "An operator ended the draining."
)
PLAIN_MESSAGE_DROPPED: Final = Event(
    "plain_message_dropped",
    WARNING,
    "dropped {task}[{message_id}]: it runs only with a row",
    "A message names a task of durable runs. Let its caller use `submit` in place of `delay`.",
)
UNKNOWN_TASK: Final = Event(
    "unknown_task",
    WARNING,
    "no such task here: {task}: {outcome}",
    "During a deploy another worker takes the run; otherwise deploy the task, or cancel its runs.",
)
EPHEMERAL_RUN_FAILED: Final = Event(
    "ephemeral_run_failed",
    ERROR,
    "a run without history failed: {task}, attempt {attempt} of run {run_id}: {cause}: {error}",
    "The job has the history `none`: no row records the failure.",
)
COMMAND_REFUSED: Final = Event(
    "command_refused",
    WARNING,
    "refused a command to the nodes {pattern!r:.80} by {matcher!r:.80}",
    "Use a glob of 200 characters or fewer; otherwise ask who else writes to Redis.",
)
OUTCOMES_NOT_RECORDED: Final = Event(
    "outcomes_not_recorded",
    ERROR,
    "outcomes are not recorded; their runs will be rescued",
    "PostgreSQL was away while the worker stopped. Its runs start again when the lease ends.",
)
WORKER_ROW_STAYS: Final = Event(
    "worker_row_stays",
    ERROR,
    "the worker's row stays; its runs wait for the end of the lease",
    "PostgreSQL was away while the worker stopped. Its runs start again when the lease ends.",
)
CALLBACK_FAILED: Final = Event(
    "callback_failed",
    ERROR,
    "the result of an admission or a report was not handled",
    "A fault of Fairshift: report the traceback. These runs start again when their lease ends.",
)
UNTESTED_VERSIONS: Final = Event(
    "untested_versions",
    WARNING,
    "{sentence}",
    "Install tested versions, or run `make compat` on these.",
)
CALLBACK_RAISED: Final = Event(
    "callback_raised",
    ERROR,
    "{callback} failed, and the worker goes on: {error!r}",
    "Are there too few file descriptors (raise LimitNOFILE)? If not, report the traceback.",
)
WORKER_GIVES_UP: Final = Event(
    "worker_gives_up",
    CRITICAL,
    "the worker has no file descriptor left: it ends its tasks, and then with status 1",
    "Raise the limit of open files (LimitNOFILE).",
)
HEARTBEAT_WITHHELD: Final = Event(
    "heartbeat_withheld",
    ERROR,
    "no heartbeat: the event loop has not turned for {seconds:.0f} s",
    "The worker's main process hangs: restart it.",
)
HEARTBEAT_FAILED: Final = Event(
    "heartbeat_failed",
    ERROR,
    "no heartbeat: {error}",
    "PostgreSQL does not answer. When the lease ends, the runs start elsewhere.",
)
HINTS_GIVEN_BACK: Final = Event(
    "hints_given_back",
    ERROR,
    "PostgreSQL does not answer: hints given back ({count}); none are taken until it does",
    "PostgreSQL does not answer. When the lease ends, the runs start elsewhere.",
)
ALIVE_FILE_FAILED: Final = Event(
    "alive_file_failed",
    WARNING,
    "the health check will fail: {error}",
    "The process cannot write the file that FAIRSHIFT_ALIVE_FILE names.",
)
STEP_RETRIED: Final = Event(
    "step_retried",
    WARNING,
    "could not {step}; trying again: {error}",
    "Redis does not answer. No run is lost.",
)
STEP_FAILED: Final = Event(
    "step_failed",
    ERROR,
    "could not {step}; trying again",
    "PostgreSQL does not answer, or refuses a statement. It is repeated each second.",
)
ADMISSION_FAILED: Final = Event(
    "admission_failed",
    ERROR,
    "run {run_id} got no answer to its request; its hint is given back",
    "A fault of Fairshift. Cancel the run if it comes back.",
)
IO_THREAD_DIED: Final = Event(
    "io_thread_died",
    CRITICAL,
    "the thread that admits and records has died",
    "A fault of Fairshift or of code that it calls: report the traceback. Another"
    " thread starts within seconds.",
)
IO_THREAD_REPLACED: Final = Event(
    "io_thread_replaced",
    WARNING,
    "another thread admits and records now; hints given back ({count})",
    "Follows `io_thread_died`.",
)
CONNECTION_NOT_CLOSED: Final = Event(
    "connection_not_closed",
    ERROR,
    "could not close the connection",
    "Nothing to do.",
)

# --- the broker's connection ---------------------------------------------------------------
BROKER_AWAY: Final = Event(
    "broker_away",
    WARNING,
    "no broker at {address}: {error}",
    "Redis does not answer. No run is lost.",
)
PASSWORD_REFUSED: Final = Event(
    "password_refused",
    ERROR,
    "Redis refuses the password: {error}",
    "Put the new one into CELERY_BROKER_URL, and restart the process.",
)
CONSUMER_RESTARTED: Final = Event(
    "consumer_restarted",
    WARNING,
    "the consumer begins anew: {kind}: {error}",
    "Nothing to do.",
)
CONNECTION_LOST_BADLY: Final = Event(
    "connection_lost_badly",
    WARNING,
    "the lost connection did not close well: {error!r}",
    "Nothing to do.",
)
LOOP_ERROR_WHILE_AWAY: Final = Event(
    "loop_error_while_away",
    WARNING,
    "while the broker is away: {error!r}",
    "Nothing to do.",
)
REDIS_LOST: Final = Event(
    "redis_lost",
    WARNING,
    "Redis was lost, and is asked again: {error!r}",
    "Redis does not answer. No run is lost.",
)
REPLY_DROPPED: Final = Event(
    "reply_dropped",
    ERROR,
    "dropped bytes that are no reply: {error!r:.500}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
LEASES_NOT_RETURNED: Final = Event(
    "leases_not_returned",
    ERROR,
    "what waits here goes back at the end: {error!r}",
    "Redis was away while the worker stopped. Its messages go back when the lease ends.",
)
LEASES_LEFT: Final = Event(
    "leases_left",
    ERROR,
    "leases end by themselves: {error!r}",
    "Redis was away while the worker stopped. Its messages go back when the lease ends.",
)
LEASES_NOT_RENEWED: Final = Event(
    "leases_not_renewed",
    ERROR,
    "leases are not renewed: {kind}: {error}",
    "Redis does not answer. No run is lost.",
)

# --- the pool ------------------------------------------------------------------------------
CHILD_BOOT_FAILED: Final = Event(
    "child_boot_failed",
    ERROR,
    "a process of the pool ended while it booted ({status}): next try in {seconds:.1f} s, "
    "{number} of {most}",
    "The project's code fails while it is imported, or memory is short: see the lines before it.",
)
POOL_CANNOT_BOOT: Final = Event(
    "pool_cannot_boot",
    CRITICAL,
    "a process of the pool ended while it booted ({status}): {most} tries in a row have failed, "
    "the worker ends",
    "Mend what the lines before it say, and start the worker again.",
)
CHILD_NOT_CREATED: Final = Event(
    "child_not_created",
    ERROR,
    "no process could be created for the pool: next try in {seconds:.1f} s: {error}",
    "The limit of open files, processes or memory is reached. Raise it.",
)
CHILD_EXITED: Final = Event(
    "child_exited",
    ERROR,
    "process {pid} of the pool exited with {status}",
    "Another process takes its place; its job was recorded as lost.",
)
CHILD_BROKEN: Final = Event(
    "child_broken",
    ERROR,
    "process {pid} of the pool is broken",
    "Another process takes its place. See the traceback.",
)
CHILD_TOO_LARGE: Final = Event(
    "child_too_large",
    WARNING,
    "process {pid} of the pool is replaced: it uses {used} kB of at most {most}",
    "What its tasks keep in memory has reached --max-memory-per-child.",
)
CHILD_READS_NOTHING: Final = Event(
    "child_reads_nothing",
    WARNING,
    "process {pid} of the pool has not read its job: it is killed, and another one gets the job",
    "A process of the pool was stopped (SIGSTOP), or had no processor time.",
)

# --- fair queues ---------------------------------------------------------------------------
LEASES_DIFFER: Final = Event(
    "leases_differ",
    ERROR,
    "queue {queue} knows of {known} messages here, we of {count}",
    "Report it if Redis was not restored.",
)
MESSAGE_QUARANTINED: Final = Event(
    "message_quarantined",
    ERROR,
    "put a message of queue {queue} aside",
    "It could not be read or handled. See who else writes to Redis.",
)
STRIKE_NOT_RECORDED: Final = Event(
    "strike_not_recorded",
    WARNING,
    "a message that ended its process goes back at once: {error!r}",
    "Redis was away when a message ended its process: it returns without a pause.",
)
OPERATIONS_REPEATED: Final = Event(
    "operations_repeated",
    INFO,
    "to be sent again: {error}",
    "Nothing to do.",
)
MESSAGE_DROPPED: Final = Event(
    "message_dropped",
    ERROR,
    "dropped bytes that are no message: {error!r:.500}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
MESSAGE_NOT_HANDLED: Final = Event(
    "message_not_handled",
    ERROR,
    "a message could not be dealt with",
    "It is put into quarantine. See the traceback.",
)
NOT_ACKNOWLEDGED: Final = Event(
    "not_acknowledged",
    WARNING,
    "what was not acknowledged in time comes again: {error!r}",
    "Redis was away while the worker stopped. Its messages go back when the lease ends.",
)
TAKE_NOT_ANSWERED: Final = Event(
    "take_not_answered",
    INFO,
    "a take was not answered any more: {error!r}",
    "Nothing to do.",
)
QUEUE_BEGAN_ANEW: Final = Event(
    "queue_began_anew",
    WARNING,
    "queue {queue} began anew: we hold {count} of its messages",
    "Redis was emptied, restored or lost keys. No durable run is lost.",
)
QUEUE_REPAIRED: Final = Event(
    "queue_repaired",
    ERROR,
    "queue {queue} begins anew with {count} plain messages: {cause}",
    "Keys of the queue were damaged, and are rebuilt. Ask who else writes to Redis.",
)
BROADCAST_INVALID: Final = Event(
    "broadcast_invalid",
    ERROR,
    "a broadcast message is invalid: {error!r:.500}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
BINDING_REMOVED: Final = Event(
    "binding_removed",
    ERROR,
    "removed {member!r:.200} from {key}: it binds no queue",
    "Other software writes to Redis. Give Redis users their own rights.",
)
UNACKNOWLEDGED_REMOVED: Final = Event(
    "unacknowledged_removed",
    ERROR,
    "removed {tag!r:.200} from {key}: it is no message: {error!r}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
KEY_PUT_ASIDE: Final = Event(
    "key_put_aside",
    ERROR,
    "put {key} aside: it was no {expected}",
    "Another program uses this Redis database. Give Fairshift one of its own.",
)

# --- beat ----------------------------------------------------------------------------------
BEAT_ROLE: Final = Event(
    "beat_role",
    INFO,
    "beat: {holder} {role}",
    "Nothing to do.",
)
BEAT_WAITS_FOR_BROKER: Final = Event(
    "beat_waits_for_broker",
    WARNING,
    "beat: waits for the broker: {error}",
    "Redis does not answer. No run is lost.",
)
BEAT_SENDS: Final = Event(
    "beat_sends", INFO, "Scheduler: Sending due task {entry} ({task})", "Nothing to do."
)
BEAT_ENTRY_INVALID: Final = Event(
    "beat_entry_invalid",
    ERROR,
    "beat: {entry} is not sent: the entry is invalid",
    "Correct the PeriodicTask in the admin.",
)
