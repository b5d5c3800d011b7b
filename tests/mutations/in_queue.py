"""Guards of the fair queue, in `fleet/transport/lua`."""

from typing import Final

from tests.mutations.mutation import broken

SENDER: Final = "tests/fleet/broker/test_sender.py::test_"
QUEUE: Final = "tests/fleet/fairness/test_queue.py::test_"
EPOCHS: Final = "tests/fleet/transport/test_epochs.py::test_"
REJECTED: Final = "tests/fleet/transport/test_rejected.py::test_"
REPAIR: Final = "tests/fleet/transport/test_repair.py::test_"
GATE: Final = "tests/fleet/worker/test_gate.py::test_"
SWEEP: Final = "tests/jobs/system/test_sweep.py::test_"

ROWS: Final = (
    broken(
        "a flush in the middle of a rebuild begins it again",
        "G1: epoch",
        f"{SWEEP}a_flush_in_the_middle_of_the_rebuild_begins_it_again",
        instead="if false then",
    ),
    broken(
        "a rejected message goes behind its line",
        "G25",
        f"{REJECTED}a_rejected_message_goes_behind_its_line",
        instead="message.order = message.order",
    ),
    broken(
        "a message that comes again says so",
        "G25",
        f"{REJECTED}a_message_that_comes_again_says_so",
        instead="message.returned = false",
    ),
    broken(
        "an operation that is sent twice in one call counts once",
        "leases",
        f"{QUEUE}a_finish_counts_once[lua]",
        instead="local lease = packed and read_lease(worker, id, packed)",
    ),
    broken(
        "what was taken for a reply that was lost goes back",
        "leases: takes are confirmed",
        f"{QUEUE}a_lost_reply_loses_no_message[lua]",
        instead="if false then",
    ),
    broken(
        "what a worker that is gone held goes back",
        "G1",
        f"{QUEUE}what_a_dead_worker_holds_goes_back_to_the_front[lua]",
        f"{QUEUE}what_has_finished_and_was_not_acked_comes_again[lua]",
        instead="count('rescued', 0)",
    ),
    broken(
        "a worker that renews keeps what it holds",
        "G6",
        f"{QUEUE}a_worker_that_renews_keeps_what_it_holds[lua]",
        instead="call('ZADD', key.workers, 'NX', now, ARGV[2])",
    ),
    broken(
        "the same attempt published twice is one",
        "G3: identity",
        f"{QUEUE}the_same_attempt_published_twice_is_one[lua]",
        instead="if call('HSET', key.meta, message.id, pack_message(message)) < 0 then",
    ),
    broken(
        "what is published while its worker drops it is ready again",
        "G1",
        f"{QUEUE}what_is_published_while_its_worker_drops_it_is_ready_again[lua]",
        f"{GATE}a_hint_that_is_published_while_it_is_dropped_comes_again",
        instead="if false then",
    ),
    broken(
        "a cap is kept in the queue",
        "G16",
        f"{QUEUE}a_cap_is_kept_and_filled[lua-1]",
        f"{QUEUE}a_cap_is_kept_and_filled[lua-3]",
        instead="local has_room = true",
    ),
    broken(
        "a paused owner is not chosen",
        "may it run now",
        f"{QUEUE}a_pause_holds_the_backlog_and_a_resume_frees_it[lua]",
        f"{QUEUE}a_paused_owner_keeps_no_stranger_from_a_lock[lua]",
        instead="return owner.ready > 0 and has_room",
    ),
    broken(
        "a rate lets its owner rest",
        "rates",
        f"{QUEUE}a_rate_lets_a_burst_through_and_then_one_at_a_time[lua]",
        instead="return 0",
    ),
    broken(
        "what is published behind a taken lock is parked",
        "G16",
        f"{QUEUE}what_is_published_behind_a_taken_lock_is_parked[lua]",
        instead="if false then",
    ),
    broken(
        "who is let to a lock and goes lets the next one",
        "G1",
        f"{QUEUE}who_is_let_to_a_lock_and_goes_lets_the_next_one[lua-withdrawal]",
        instead="if false then",
    ),
    broken(
        "a hint has a deadline of its own",
        "G14",
        f"{SENDER}a_hint_past_its_deadline_is_not_delivered[False]",
        instead="deadline = 0",
    ),
    broken(
        "what is delayed waits for its time",
        "delayed delivery",
        f"{QUEUE}a_delayed_message_waits_for_its_time[lua]",
        instead="for _, id in ipairs(call('ZRANGE', key.delayed, 0, 99)) do",
    ),
    broken(
        "what runs counts again after a flush",
        "epoch",
        f"{EPOCHS}after_a_flush_what_runs_counts_again",
        instead="call('HSET', held, message.id, cmsgpack.pack(number))",
    ),
    broken(
        "an older copy is known by its epoch",
        "epoch",
        f"{EPOCHS}a_copy_of_an_older_epoch_is_told_again",
        instead="local is_older = false or (known == state.epoch and lease > state.lease)",
    ),
    broken(
        "what has forgotten gives nothing out",
        "epoch",
        f"{EPOCHS}a_queue_that_has_forgotten_gives_nothing_until_it_is_told",
        f"{EPOCHS}who_is_told_waits_for_what_others_hold",
        instead="if is_other then",
        is_quick=True,
    ),
    broken(
        "a worker that leaves holds nothing",
        "G20",
        f"{QUEUE}a_worker_that_leaves_holds_nothing[lua]",
        instead="local returned = 0",
    ),
    broken(
        "what is leased is not published again by who mends",
        "G8: nothing runs twice",
        f"{REPAIR}an_end_that_was_said_into_a_wrong_key_is_no_reason_to_run_again",
        instead="if true then",
    ),
    broken(
        "a message is forgotten before its lease",
        "G8: nothing runs twice",
        f"{REPAIR}an_end_that_failed_halfway_is_no_reason_to_run_again",
        instead="delete_fields(key.held .. leases[1].worker, ids); forget(ids)",
    ),
    broken(
        "a body is stored when all else has been",
        "G8: nothing runs twice",
        f"{REPAIR}a_message_that_was_put_in_halfway_is_put_in_once",
        instead="call('HSET', key.body, message.id, body); bodies[#bodies + 1] = message.id",
    ),
    broken(
        "what is adopted stays in the list until it is put in",
        "G8: nothing is lost",
        f"{REPAIR}a_stock_message_is_not_lost_between_two_lists",
        instead="if call('LREM', ARGV[2], 1, ARGV[3]) == 0 then",
    ),
    broken(
        "what is moved is in the list before it leaves the queue",
        "G8: nothing is lost",
        "tests/fleet/broker/test_leaving.py::test_a_move_that_fails_loses_nothing",
        instead="withdraw({ARGV[2]}); call('LPUSH', ARGV[3], ARGV[4])",
        fails_with="DID NOT RAISE",
    ),
    broken(
        "who mends counts what runs",
        "G16: caps",
        f"{REPAIR}what_is_leased_stays_leased",
        instead="owner.count, owner.expected = owner.count, owner.expected + lease.expected",
    ),
    broken(
        "what is put aside is bounded",
        "G22",
        f"{REPAIR}what_is_put_aside_is_bounded",
        instead="if true then",
    ),
    broken(
        "a hint that is known is not put in again",
        "G3",
        f"{SENDER}the_same_hint_twice_in_one_go_is_one",
        instead="elseif false then",
    ),
)
