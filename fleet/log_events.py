"""Every event that fleet logs. `docs/operate/logs.md` is made from it."""

from __future__ import annotations

from typing import Final

from fleet.logs import Event

# --- a worker and its queues ---------------------------------------------------------------
WORKER_DRAINS: Final = Event.warning(
    "drains: takes no more from {queues}",
    "An operator asked for it.",
)
WORKER_TAKES_AGAIN: Final = Event.warning(
    "takes again from {queues}", "An operator ended the draining."
)
PLAIN_MESSAGE_DROPPED: Final = Event.warning(
    "dropped {task}[{message_id}]: it runs only with a row",
    "A message names a task of durable runs. Let its caller use `submit` in place of `delay`.",
)
UNKNOWN_TASK: Final = Event.warning(
    "no such task here: {task}: {outcome}",
    "During a deploy another worker takes the run; otherwise deploy the task, or cancel its runs.",
)
EPHEMERAL_RUN_FAILED: Final = Event.error(
    "a run without history failed: {task}, attempt {attempt} of run {run_id}: {cause}: {error}",
    "The job has the history `none`: no row records the failure.",
)
COMMAND_REFUSED: Final = Event.warning(
    "refused a command to the nodes {pattern!r:.80} by {matcher!r:.80}",
    "Use a glob of 200 characters or fewer; otherwise ask who else writes to Redis.",
)
OUTCOMES_NOT_RECORDED: Final = Event.error(
    "outcomes are not recorded; their runs will be rescued",
    "PostgreSQL was away while the worker stopped. Its runs start again when the lease ends.",
)
WORKER_ROW_STAYS: Final = Event.error(
    "the worker's row stays; its runs wait for the end of the lease",
    "PostgreSQL was away while the worker stopped. Its runs start again when the lease ends.",
)
CALLBACK_FAILED: Final = Event.error(
    "the result of an admission or a report was not handled",
    "A fault of Fairshift: report the traceback. These runs start again when their lease ends.",
)
UNTESTED_VERSIONS: Final = Event.warning(
    "{sentence}",
    "Install tested versions, or run `make compat` on these.",
)
CALLBACK_RAISED: Final = Event.error(
    "{callback} failed, and the worker goes on: {error!r}",
    "Are there too few file descriptors (raise LimitNOFILE)? If not, report the traceback.",
)
WORKER_GIVES_UP: Final = Event.critical(
    "the worker has no file descriptor left: it ends its tasks, and then with status 1",
    "Raise the limit of open files (LimitNOFILE).",
)
HEARTBEAT_WITHHELD: Final = Event.error(
    "no heartbeat: the event loop has not turned for {seconds:.0f} s",
    "The worker's main process hangs: restart it.",
)
HEARTBEAT_FAILED: Final = Event.error(
    "no heartbeat: {error}",
    "PostgreSQL does not answer. When the lease ends, the runs start elsewhere.",
)
HINTS_GIVEN_BACK: Final = Event.error(
    "PostgreSQL does not answer: hints given back ({count}); none are taken until it does",
    "PostgreSQL does not answer. When the lease ends, the runs start elsewhere.",
)
ALIVE_FILE_FAILED: Final = Event.warning(
    "the health check will fail: {error}",
    "The process cannot write the file that FAIRSHIFT_ALIVE_FILE names.",
)
STEP_RETRIED: Final = Event.warning(
    "could not {step}; trying again: {error}",
    "Redis does not answer. No run is lost.",
)
STEP_FAILED: Final = Event.error(
    "could not {step}; trying again",
    "PostgreSQL does not answer, or refuses a statement. It is repeated each second.",
)
ADMISSION_FAILED: Final = Event.error(
    "run {run_id} got no answer to its request; its hint is given back",
    "A fault of Fairshift. Cancel the run if it comes back.",
)
IO_THREAD_DIED: Final = Event.critical(
    "the thread that admits and records has died",
    "A fault of Fairshift or of code that it calls: report the traceback. Another"
    " thread starts within seconds.",
)
IO_THREAD_REPLACED: Final = Event.warning(
    "another thread admits and records now; hints given back ({count})",
    "Follows `io_thread_died`.",
)
CONNECTION_NOT_CLOSED: Final = Event.error(
    "could not close the connection",
    "Nothing to do.",
)

# --- the broker's connection ---------------------------------------------------------------
BROKER_AWAY: Final = Event.warning(
    "no broker at {address}: {error}",
    "Redis does not answer. No run is lost.",
)
PASSWORD_REFUSED: Final = Event.error(
    "Redis refuses the password: {error}",
    "Put the new one into CELERY_BROKER_URL, and restart the process.",
)
CONSUMER_RESTARTED: Final = Event.warning(
    "the consumer begins anew: {kind}: {error}",
    "Nothing to do.",
)
CONNECTION_LOST_BADLY: Final = Event.warning(
    "the lost connection did not close well: {error!r}",
    "Nothing to do.",
)
LOOP_ERROR_WHILE_AWAY: Final = Event.warning(
    "while the broker is away: {error!r}",
    "Nothing to do.",
)
REDIS_LOST: Final = Event.warning(
    "Redis was lost, and is asked again: {error!r}",
    "Redis does not answer. No run is lost.",
)
REPLY_DROPPED: Final = Event.error(
    "dropped bytes that are no reply: {error!r:.500}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
LEASES_NOT_RETURNED: Final = Event.error(
    "what waits here goes back at the end: {error!r}",
    "Redis was away while the worker stopped. Its messages go back when the lease ends.",
)
LEASES_LEFT: Final = Event.error(
    "leases end by themselves: {error!r}",
    "Redis was away while the worker stopped. Its messages go back when the lease ends.",
)
LEASES_NOT_RENEWED: Final = Event.error(
    "leases are not renewed: {kind}: {error}",
    "Redis does not answer. No run is lost.",
)

# --- the pool ------------------------------------------------------------------------------
CHILD_BOOT_FAILED: Final = Event.error(
    "a process of the pool ended while it booted ({status}): next try in {seconds:.1f} s, "
    "{number} of {most}",
    "The project's code fails while it is imported, or memory is short: see the lines before it.",
)
POOL_CANNOT_BOOT: Final = Event.critical(
    "a process of the pool ended while it booted ({status}): {most} tries in a row have failed, "
    "the worker ends",
    "Mend what the lines before it say, and start the worker again.",
)
CHILD_NOT_CREATED: Final = Event.error(
    "no process could be created for the pool: next try in {seconds:.1f} s: {error}",
    "The limit of open files, processes or memory is reached. Raise it.",
)
CHILD_EXITED: Final = Event.error(
    "process {pid} of the pool exited with {status}",
    "Another process takes its place; its job was recorded as lost.",
)
CHILD_BROKEN: Final = Event.error(
    "process {pid} of the pool is broken",
    "Another process takes its place. See the traceback.",
)
CHILD_TOO_LARGE: Final = Event.warning(
    "process {pid} of the pool is replaced: it uses {used} kB of at most {most}",
    "What its tasks keep in memory has reached --max-memory-per-child.",
)
CHILD_READS_NOTHING: Final = Event.warning(
    "process {pid} of the pool has not read its job: it is killed, and another one gets the job",
    "A process of the pool was stopped (SIGSTOP), or had no processor time.",
)

# --- fair queues ---------------------------------------------------------------------------
LEASES_DIFFER: Final = Event.error(
    "queue {queue} knows of {known} messages here, we of {count}",
    "Report it if Redis was not restored.",
)
MESSAGE_QUARANTINED: Final = Event.error(
    "put a message of queue {queue} aside",
    "It could not be read or handled. See who else writes to Redis.",
)
STRIKE_NOT_RECORDED: Final = Event.warning(
    "a message that ended its process goes back at once: {error!r}",
    "Redis was away when a message ended its process: it returns without a pause.",
)
OPERATIONS_REPEATED: Final = Event.info(
    "to be sent again: {error}",
    "Nothing to do.",
)
MESSAGE_DROPPED: Final = Event.error(
    "dropped bytes that are no message: {error!r:.500}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
MESSAGE_NOT_HANDLED: Final = Event.error(
    "a message could not be dealt with",
    "It is put into quarantine. See the traceback.",
)
NOT_ACKNOWLEDGED: Final = Event.warning(
    "what was not acknowledged in time comes again: {error!r}",
    "Redis was away while the worker stopped. Its messages go back when the lease ends.",
)
TAKE_NOT_ANSWERED: Final = Event.info(
    "a take was not answered any more: {error!r}",
    "Nothing to do.",
)
QUEUE_BEGAN_ANEW: Final = Event.warning(
    "queue {queue} began anew: we hold {count} of its messages",
    "Redis was emptied, restored or lost keys. No durable run is lost.",
)
QUEUE_REPAIRED: Final = Event.error(
    "queue {queue} begins anew with {count} plain messages: {cause}",
    "Keys of the queue were damaged, and are rebuilt. Ask who else writes to Redis.",
)
BROADCAST_INVALID: Final = Event.error(
    "a broadcast message is invalid: {error!r:.500}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
BINDING_REMOVED: Final = Event.error(
    "removed {member!r:.200} from {key}: it binds no queue",
    "Other software writes to Redis. Give Redis users their own rights.",
)
UNACKNOWLEDGED_REMOVED: Final = Event.error(
    "removed {tag!r:.200} from {key}: it is no message: {error!r}",
    "Other software writes to Redis. Give Redis users their own rights.",
)
KEY_PUT_ASIDE: Final = Event.error(
    "put {key} aside: it was no {expected}",
    "Another program uses this Redis database. Give Fairshift one of its own.",
)

# --- beat ----------------------------------------------------------------------------------
BEAT_ROLE: Final = Event.info(
    "beat: {holder} {role}",
    "Nothing to do.",
)
BEAT_WAITS_FOR_BROKER: Final = Event.warning(
    "beat: waits for the broker: {error}",
    "Redis does not answer. No run is lost.",
)
BEAT_SENDS: Final = Event.info("Scheduler: Sending due task {entry} ({task})", "Nothing to do.")
BEAT_ENTRY_INVALID: Final = Event.error(
    "beat: {entry} is not sent: the entry is invalid",
    "Correct the PeriodicTask in the admin.",
)

Event.name_all(globals())
