"""What Fairshift replaces in Celery, billiard, Kombu and redis-py, and the private names it uses.

Pure data. On versions that were not tested `fleet/versions.py` looks for each name before anything
else. `tests/fleet/test_patches.py` fails for a private name in our code without a row.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Patch(NamedTuple):
    """Names of one of their modules or classes (`module:Class`), and our files that use them.

    `overrides` are methods of our subclass, `replaces` attributes that we set on their objects or
    modules, `uses` private names that we read or call, `asks` those that not each tested version
    has. Files are below `fleet/` or `jobs/`.
    """

    of: str
    why: str
    files: str
    replaces: str = ""
    overrides: str = ""
    uses: str = ""
    asks: str = ""


PATCHES: Final = (
    # --- the ways in --------------------------------------------------------------------------
    Patch(
        "kombu.transport",
        "URLs of Redis mean the fair transport, also where Kombu has resolved the scheme before",
        "wiring.py",
        replaces="TRANSPORT_ALIASES _transport_cache",
    ),
    Patch(
        "celery.app.events:Events",
        "events of durable runs carry no values; without a monitor there are none",
        "wiring.py",
        replaces="dispatcher_cls",
    ),
    Patch(
        "celery.concurrency.prefork:TaskPool",
        "processes are those of fleet.pool, which has the names that Celery reads of them; a task"
        " passes the gate; recorded starts come to an end",
        "pool/prefork.py pool/processes.py worker/leasing.py worker/node.py",
        replaces="Pool apply_async close",
        uses="_pool _state",
    ),
    Patch(
        "celery.worker.worker:WorkController",
        "the consumer is ours",
        "worker/leasing.py",
        replaces="consumer_cls",
    ),
    Patch(
        "celery.worker.state",
        "a worker ends when its processes cannot boot",
        "pool/children.py",
        replaces="should_stop",
    ),
    # --- tasks and requests -------------------------------------------------------------------
    Patch(
        "celery.app.task:Task",
        "an attempt's outcome is decided in the child; forked copies end; `map` calls no task that"
        " requires a row; fair queues acknowledge late; pydantic arguments are as Celery sends",
        "pool/copies.py worker/child.py worker/indirect.py worker/leasing.py"
        " jobs/catalog/arguments.py",
        replaces="Request acks_late retry run",
        asks="_dump_pydantic_arguments",
    ),
    Patch(
        "celery.app.base:Celery",
        "Celery sends the errback of a task that requires a row, and does not call it in place",
        "worker/indirect.py",
        replaces="__header__",
    ),
    Patch(
        "celery.worker.request:Request",
        "a cancelled or lost run ends as Celery's",
        "worker/outcomes.py",
        uses="_already_revoked _announce_revoked",
    ),
    Patch(
        "celery._state",
        "a call made inside a task is its owner's",
        "router.py",
        uses="_task_stack",
    ),
    # --- the consumer -------------------------------------------------------------------------
    Patch(
        "celery.worker.consumer.consumer:Consumer",
        "a hint goes to the gate, and waits for its admission; events wait 0.1 s; the loop turns"
        " without a broker",
        "worker/consumer.py",
        overrides="connect create_task_handler ensure_connected on_close"
        " on_connection_error_after_connected on_send_event_buffered on_unknown_task"
        " update_strategies",
    ),
    Patch(
        "celery.bootsteps:StartStopStep",
        "the loop turns between the steps of a restart",
        "worker/consumer.py",
        replaces="start",
    ),
    Patch(
        "kombu.asynchronous.timer:Timer",
        "a lost connection takes its own entries along, and no time limit",
        "worker/consumer.py",
        replaces="clear",
    ),
    Patch(
        "celery.events.dispatcher:EventDispatcher",
        "Redis says how many have received an event",
        "worker/consumer.py worker/events.py",
        replaces="buffer_limit",
        overrides="_publish extend_buffer send",
        uses="_outbound_buffer",
    ),
    Patch(
        "kombu.asynchronous.hub:Hub",
        "the loop does not sleep while it has work",
        "transport/poller.py worker/consumer.py worker/node.py",
        uses="_ready _waker",
    ),
    Patch(
        "kombu.asynchronous.semaphore:LaxBoundedSemaphore",
        "jobs that outlive a lost connection keep their slots",
        "pool/slots.py",
        replaces="value",
    ),
    Patch(
        "kombu.connection:Connection",
        "its retries would block the loop; a forked process leaves pooled connections alone",
        "transport/transport.py worker/consumer.py",
        replaces="ensure",
        uses="_collect",
    ),
    Patch(
        "kombu.pidbox:Node",
        "commands that write are refused, and patterns that take too long",
        "worker/remote.py",
        replaces="handle_message handlers",
    ),
    Patch(
        "celery.worker.consumer.mingle:Mingle",
        "a reply to a hello ends no worker and revokes no task",
        "worker/remote.py",
        replaces="on_revoked_received send_hello",
    ),
    # --- the transport ------------------------------------------------------------------------
    Patch(
        "kombu.transport.redis:Channel",
        "fair queues are served by scripts, and a lost connection is opened again in place; Kombu"
        " itself tells subclasses to define `_delete`, `_get`, `_purge`, `_put` and `_size`",
        "broker/broker.py broker/leaving.py broker/waiting.py transport/adoption.py"
        " transport/channel.py transport/poller.py transport/stock.py"
        " transport/taking.py transport/waiting.py",
        overrides="_basic_cancel _brpop_read _brpop_start _create_client _delete _get _lookup"
        " _purge _put _put_fanout _queue_bind _receive _receive_one _size",
        uses="_brpop_sent_at _closing _disconnect_pools _get_message_priority _get_publish_topics"
        " _in_listen _in_poll _q_for_pri _queue_cycle _tag_to_queue",
    ),
    Patch(
        "kombu.transport.redis:SentinelChannel",
        "the Sentinel that answered last is asked first, and the next at once if one is down",
        "transport/sentinel.py",
        overrides="_sentinel_managed_pool",
        uses="_async_sentinel_manager _sentinel_manager",
    ),
    Patch(
        "kombu.transport.redis:MultiChannelPoller",
        "each turn of the loop flushes what is due, and each reply is read from its own connection",
        "transport/poller.py",
        overrides="get on_poll_start on_readable _client_registered",
        uses="_channels _chan_to_sock _fd_to_chan",
    ),
    Patch(
        "kombu.transport.redis:PublishBatch",
        "a batch with messages for fair queues fails as a whole",
        "transport/publish_batch.py",
        uses="_failed",
    ),
    Patch(
        "kombu.transport.redis:QoS",
        "leases take the place of Kombu's list of unacknowledged messages",
        "transport/qos.py",
        uses="_delivered _dirty _quick_ack",
    ),
    Patch(
        "kombu.transport.redis:Transport",
        "what the channel has taken is delivered as if Kombu had read it",
        "transport/taking.py transport/waiting.py",
        uses="_callbacks _deliver",
    ),
    Patch(
        "kombu.transport.virtual.base:Message",
        "unpacked within a limit; JSON is read directly",
        "transport/message.py",
        overrides="_decode",
    ),
    Patch(
        "redis.connection:Connection",
        "the loop reads the connections on which a reply waits",
        "transport/channel.py transport/pending_take.py transport/poller.py transport/scripts.py"
        " transport/waiting.py",
        uses="_sock can_read pack_commands read_response send_command send_packed_command",
    ),
    # --- beat and checks ----------------------------------------------------------------------
    Patch(
        "celery.beat:Scheduler",
        "a beat that does not lead sends nothing, and waits for no broker",
        "beat/scheduler.py",
        overrides="_ensure_connected",
        uses="_heap",
    ),
    Patch(
        "celery.schedules:BaseSchedule",
        "due times are counted from the last one, on PostgreSQL's clock",
        "beat/due.py jobs/system/beat.py",
        replaces="nowfun",
    ),
    Patch(
        "django_celery_beat.schedulers:ModelEntry",
        "entries are due by PostgreSQL's clock",
        "jobs/system/beat.py",
        overrides="_default_now",
    ),
    Patch(
        "django_celery_beat.schedulers:DatabaseScheduler",
        "entries are read again when another beat has led",
        "jobs/system/beat.py",
        uses="_dirty _initial_read _last_timestamp _schedule",
    ),
    Patch(
        "django_celery_results.backends.database:DatabaseBackend",
        "results are encrypted before they are stored, and decrypted when they are read",
        "jobs/runs/result_backend.py",
        overrides="_get_extended_properties _get_task_meta_for _store_result",
    ),
    Patch(
        "celery.utils.dispatch.signal:Signal",
        "`check --deploy` looks for a receiver of `worker_init`",
        "jobs/checks/wiring.py",
        uses="_live_receivers",
    ),
    Patch(
        "celery.local:Proxy",
        "the app or the task behind Celery's proxy",
        "jobs/catalog/arguments.py jobs/checks/wiring.py jobs/management/doctor/broker.py"
        " jobs/management/doctor/examination.py jobs/management/testing/worker.py"
        " jobs/owners/request_rates.py jobs/runs/dispatch.py",
        uses="_get_current_object",
    ),
)
