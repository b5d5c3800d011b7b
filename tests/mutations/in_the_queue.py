"""Guards of the fair queue: leases, limits and locks in Lua, and the transport around them."""

from __future__ import annotations

from typing import Final

from tests.mutations.mutation import Mutation

LUA: Final = "fleet/transport/lua"
TAKE: Final = f"{LUA}/take.lua"
LEASES: Final = f"{LUA}/shared/leases.lua"
MESSAGES: Final = f"{LUA}/shared/messages.lua"
ACCOUNTS: Final = f"{LUA}/shared/accounts.lua"
FAIRNESS: Final = "tests/fleet/test_fairness.py::test_"
GATE: Final = "tests/fleet/test_gate.py::test_"
HELD: Final = "tests/fleet/test_leases.py::test_"
EPOCH: Final = f"{LUA}/shared/epoch.lua"
HOLD: Final = f"{LUA}/hold.lua"
EPOCHS: Final = "tests/fleet/test_epochs.py::test_"
OWNERS: Final = "tests/fleet/test_owners.py::test_"
SENT: Final = "tests/fleet/test_sending.py::test_"
ADOPTED: Final = "tests/fleet/test_adopting.py::test_"

ROWS: Final = (
    Mutation(
        "who has lost a lease can neither finish, ack nor give back",
        "leases: the number must match",
        LEASES,
        "if lease and lease.number == tonumber(ARGV[at + 1]) then",
        "if lease then",
        (
            f"{FAIRNESS}an_old_lease_number_has_no_say[lua]",
            f"{FAIRNESS}a_worker_that_is_back_holds_what_it_names[lua]",
        ),
        is_quick=True,
    ),
    Mutation(
        "what is said twice in one call counts once",
        "leases",
        LEASES,
        "local lease = packed and not seen[id] and",
        "local lease = packed and",
        (f"{FAIRNESS}a_finish_counts_once[lua]",),
    ),
    Mutation(
        "what is finished twice counts once",
        "leases",
        f"{LUA}/finish.lua",
        "if not lease.is_finished then",
        "if true then",
        (f"{FAIRNESS}a_finish_counts_once[lua]",),
        fails_with="Error running script",
    ),
    Mutation(
        "what was taken for a reply that was lost goes back",
        "leases: takes are confirmed",
        TAKE,
        "if take_number ~= confirmed then",
        "if false then",
        (f"{FAIRNESS}a_lost_reply_loses_no_message[lua]",),
    ),
    Mutation(
        "what was confirmed stays",
        "leases: takes are confirmed",
        TAKE,
        "if lease.number >= first_lease then",
        "if true then",
        (f"{FAIRNESS}a_lost_reply_loses_no_message[lua]",),
    ),
    Mutation(
        "what a worker that is gone held goes back",
        "G1",
        TAKE,
        "count('rescued', put_back_some(gone, 100))",
        "count('rescued', 0)",
        (
            f"{FAIRNESS}what_a_dead_worker_holds_goes_back_to_the_front[lua]",
            f"{FAIRNESS}what_has_finished_and_was_not_acked_comes_again[lua]",
        ),
    ),
    Mutation(
        "a worker that renews keeps what it holds",
        "G6",
        f"{LUA}/renew.lua",
        "call('ZADD', key.workers, now, ARGV[2])",
        "call('ZADD', key.workers, 'NX', now, ARGV[2])",
        (f"{FAIRNESS}a_worker_that_renews_keeps_what_it_holds[lua]",),
    ),
    Mutation(
        "the same attempt published twice is one",
        "G3: identity",
        MESSAGES,
        "if call('HSETNX', key.meta, message.id, pack_message(message)) == 0 then",
        "if call('HSET', key.meta, message.id, pack_message(message)) < 0 then",
        (f"{FAIRNESS}the_same_attempt_published_twice_is_one[lua]",),
    ),
    Mutation(
        "what is published while its worker drops it is ready again",
        "G1",
        LEASES,
        "if not lease.is_finished and call('HEXISTS', key.again, lease.id) == 1 then",
        "if false then",
        (
            f"{FAIRNESS}what_is_published_while_its_worker_drops_it_is_ready_again[lua]",
            f"{GATE}a_hint_that_is_published_while_it_is_dropped_comes_again",
        ),
    ),
    Mutation(
        "what has run and was published again meanwhile is done with",
        "G3",
        LEASES,
        "if not lease.is_finished and call('HEXISTS', key.again, lease.id) == 1 then",
        "if call('HEXISTS', key.again, lease.id) == 1 then",
        (f"{FAIRNESS}what_is_published_while_its_worker_drops_it_is_ready_again[lua]",),
    ),
    Mutation(
        "a cap is kept in the queue",
        "G16",
        ACCOUNTS,
        "owner.cap == 0 or owner.running < owner.cap",
        "true",
        (
            f"{FAIRNESS}a_cap_is_kept_and_filled[lua-1]",
            f"{FAIRNESS}a_cap_is_kept_and_filled[lua-3]",
            f"{OWNERS}a_cap_keeps_its_owner_out_of_the_choice",
        ),
    ),
    Mutation(
        "a paused owner is not chosen",
        "may it run now",
        ACCOUNTS,
        "owner.ready > 0 and owner.paused == 0 and has_room",
        "owner.ready > 0 and has_room",
        (
            f"{FAIRNESS}a_pause_holds_the_backlog_and_a_resume_frees_it[lua]",
            f"{FAIRNESS}a_paused_owner_keeps_no_stranger_from_a_lock[lua]",
        ),
    ),
    Mutation(
        "a rate lets its owner rest",
        "rates",
        ACCOUNTS,
        "return free_at > now and free_at or 0",
        "return 0",
        (
            f"{FAIRNESS}a_rate_without_a_burst_is_one_at_a_time[lua]",
            f"{FAIRNESS}a_rate_lets_a_burst_through_and_then_one_at_a_time[lua]",
        ),
    ),
    Mutation(
        "what is dropped without a run spends no rate",
        "rates",
        ACCOUNTS,
        "owner.tat = math.max(owner.tat - 1000000 / owner.rate, now)",
        "owner.tat = math.max(owner.tat, now)",
        (f"{FAIRNESS}what_is_dropped_without_a_run_spends_no_rate[lua]",),
        fails_with="not enough values to unpack",
    ),
    Mutation(
        "a lock that was taken since is looked at in the choice",
        "G16",
        TAKE,
        "elseif message and is_locked(message.lock) then",
        "elseif message and false then",
        (f"{FAIRNESS}a_lock_is_held_by_one_at_a_time[lua]",),
    ),
    Mutation(
        "what is published behind a taken lock is parked",
        "G16",
        MESSAGES,
        "    if is_locked(message.lock) then\n        park(message)",
        "    if false then\n        park(message)",
        (f"{FAIRNESS}what_is_published_behind_a_taken_lock_is_parked[lua]",),
    ),
    Mutation(
        "who is let to a lock and goes lets the next one",
        "G1",
        MESSAGES,
        "if message.lock ~= '' and not is_locked(message.lock) then",
        "if false then",
        (f"{FAIRNESS}who_is_let_to_a_lock_and_goes_lets_the_next_one[lua-withdrawal]",),
    ),
    Mutation(
        "past its deadline a message is diverted",
        "G14",
        TAKE,
        "if message and message.deadline > 0 and message.deadline <= now then",
        "if false then",
        (f"{FAIRNESS}a_message_past_its_deadline_is_diverted[lua]",),
    ),
    Mutation(
        "a hint has a deadline of its own",
        "G14",
        f"{LUA}/hints.lua",
        "deadline = deadline == '' and 0 or now + deadline",
        "deadline = 0",
        (f"{SENT}a_hint_past_its_deadline_is_not_delivered[False]",),
    ),
    Mutation(
        "what has waited before keeps its place when Celery sends it",
        "hand-backs keep their place",
        "fleet/sending.py",
        'facts["waited_seconds"] = -hint.delay_seconds',
        "pass",
        (f"{SENT}a_filled_template_is_celery_s_own_message",),
    ),
    Mutation(
        "what is delayed waits for its time",
        "delayed delivery",
        TAKE,
        "call('ZRANGEBYSCORE', key.delayed, '-inf', now, 'LIMIT', 0, 100)",
        "call('ZRANGEBYSCORE', key.delayed, '-inf', '+inf', 'LIMIT', 0, 100)",
        (f"{FAIRNESS}a_delayed_message_waits_for_its_time[lua]",),
    ),
    Mutation(
        "what is leased is not withdrawn",
        "leases",
        MESSAGES,
        "if message and take_from_lines(message) then",
        "if message and (take_from_lines(message) or true) then",
        (f"{FAIRNESS}a_withdrawn_message_does_not_start[lua]",),
    ),
    Mutation(
        "a worker that is back holds what it names and no more",
        "epoch",
        f"{LUA}/keep.lua",
        "if not named[lease.id] then",
        "if false then",
        (
            f"{FAIRNESS}a_worker_that_is_back_holds_what_it_names[lua]",
            f"{HELD}a_server_that_took_over_is_told_what_is_held",
        ),
    ),
    Mutation(
        "what runs counts again after a flush",
        "epoch",
        HOLD,
        "resume_lease(worker, message, number, expected, now - ran_for)",
        "call('HSET', held, message.id, cmsgpack.pack(number))",
        (
            f"{EPOCHS}after_a_flush_what_runs_counts_again",
            f"{EPOCHS}after_a_flush_a_lock_is_taken_again",
        ),
    ),
    Mutation(
        "what is held stands in no line of an older copy",
        "epoch",
        HOLD,
        "take_from_lines(known)",
        "",
        (f"{EPOCHS}what_waits_in_an_older_copy_and_runs_here_is_not_taken_twice",),
    ),
    Mutation(
        "what a worker that is back names is not its last take",
        "epoch",
        f"{LUA}/keep.lua",
        "call('HDEL', key.takes, ARGV[2])",
        "",
        (
            f"{FAIRNESS}a_worker_that_is_back_keeps_what_it_names_at_its_next_take[lua]",
            f"{EPOCHS}an_older_copy_is_known_by_what_it_has_not_heard_of",
        ),
    ),
    Mutation(
        "an older copy is known by its numbers",
        "epoch",
        EPOCH,
        "known == state.epoch and lease > state.lease",
        "false",
        (f"{EPOCHS}an_older_copy_is_known_by_what_it_has_not_heard_of",),
    ),
    Mutation(
        "an older copy is known by its epoch",
        "epoch",
        EPOCH,
        "known > state.epoch or",
        "false or",
        (f"{EPOCHS}a_copy_of_an_older_epoch_is_told_again",),
    ),
    Mutation(
        "what has forgotten gives nothing out",
        "epoch",
        TAKE,
        "if is_other or not is_open() then",
        "if is_other then",
        (
            f"{EPOCHS}a_queue_that_has_forgotten_gives_nothing_until_it_is_told",
            f"{EPOCHS}who_is_told_waits_for_what_others_hold",
        ),
        is_quick=True,
    ),
    Mutation(
        "a queue that nobody tells anything goes on",
        "epoch",
        EPOCH,
        "age >= PATIENCE or",
        "",
        (f"{EPOCHS}a_queue_that_nobody_tells_anything_goes_on",),
    ),
    Mutation(
        "a worker that leaves holds nothing",
        "G20",
        f"{LUA}/leave.lua",
        "local returned = put_back_some(ARGV[2], tonumber(ARGV[3]))",
        "local returned = 0",
        (
            f"{FAIRNESS}a_worker_that_leaves_holds_nothing[lua]",
            f"{HELD}who_leaves_holds_nothing",
        ),
    ),
    Mutation(
        "an empty string hides no stock client's message",
        "G8",
        TAKE,
        "or call('LLEN', queue) > state.placeholders",
        "",
        (f"{ADOPTED}an_empty_string_hides_nobody",),
    ),
    Mutation(
        "a placeholder is not put aside",
        "G8",
        f"{LUA}/quarantine.lua",
        "call('LLEN', queue) <= state.placeholders",
        "false",
        (f"{ADOPTED}who_looks_twice_takes_no_placeholder",),
    ),
    Mutation(
        "a message that ends its process again and again is put aside",
        "G7",
        "fleet/transport/quarantine.py",
        "if strikes < STRIKES:",
        "if True:",
        ("tests/fleet/test_quarantine.py::test_a_message_that_ends_its_processes_is_put_aside",),
    ),
    Mutation(
        "a message that ended its process comes back later each time",
        "G7",
        "fleet/transport/quarantine.py",
        "pause = min(2**strikes, STRIKE_PAUSE_MOST)",
        "pause = 0",
        ("tests/fleet/test_quarantine.py::test_a_message_that_ends_its_processes_is_put_aside",),
    ),
    Mutation(
        "what is set in between is told again",
        "pauses",
        "fleet/owners.py",
        "client.delete(*(settings_key(queue) for queue in self.queues))",
        "",
        (f"{OWNERS}what_was_set_in_between_is_told_again",),
        is_quick=True,
    ),
    Mutation(
        "an owner's settings are sent again when they were sent in part",
        "pauses",
        "fleet/owners.py",
        "            self._set(client, settings)\n            # After them",
        "            for key in keys:\n"
        "                client.set(key, mark, ex=REMEMBERED_SECONDS)\n"
        "            self._set(client, settings)\n            # After them",
        (f"{OWNERS}what_was_sent_in_part_is_sent_again",),
    ),
)
