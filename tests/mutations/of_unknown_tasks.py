"""Guards around tasks that a worker does not know."""

from __future__ import annotations

from typing import Final

from tests.mutations.mutation import Mutation

WORKER: Final = "tests/fleet/worker/test_unknown_tasks.py::test_"
RUNS: Final = "tests/jobs/runs/test_unknown_tasks.py::test_"
FREED: Final = "tests/jobs/runs/test_unblocking.py::test_"

ROWS: Final = (
    Mutation(
        "a hint of an unknown task is not Celery's to drop",
        "G1",
        "fleet/worker/consumer.py",
        "if self.unknown is None or not self.unknown.on_message(message):",
        "if True:",
        (f"{WORKER}a_hint_goes_back_to_the_queue_when_another_worker_knows_its_task",),
        is_quick=True,
    ),
    Mutation(
        "a hint that comes back to a worker without its task rests",
        "G1",
        "fleet/worker/unknown_tasks.py",
        "    if returns % 2 == 0:\n",
        "    if True:\n",
        (f"{WORKER}a_hint_that_comes_back_rests_in_the_queue",),
    ),
    Mutation(
        "a run waits for its task only where no live worker knows it",
        "G1",
        "jobs/runs/sql/block_unknown.sql",
        "      AND (l.queue, l.task) NOT IN (SELECT queue, task FROM known)\n",
        "",
        (f"{WORKER}a_hint_goes_back_to_the_queue_when_another_worker_knows_its_task",),
    ),
    Mutation(
        "a boot frees the runs that waited for its tasks",
        "G1",
        "jobs/system/heartbeat.py",
        "publish_with_known_task(is_first_chunk_only=True)",
        "pass",
        (f"{WORKER}a_worker_that_boots_frees_what_has_waited_for_it",),
    ),
    Mutation(
        "the sweep frees runs of a task that a worker of their queue knows, and no others",
        "G1",
        "jobs/runs/sql/unblock_known.sql",
        "      AND ((r.queue, r.task) IN (SELECT queue, task FROM known)\n",
        "      AND (true\n",
        (f"{FREED}a_run_that_waits_for_its_task_is_freed_by_a_worker_that_knows_it",),
    ),
    Mutation(
        "a moved run has a hint of its own",
        "G1",
        "jobs/runs/renamed_tasks.py",
        "token = token + (state = 'queued')::int,",
        "token = token,",
        (f"{RUNS}a_hint_that_a_worker_holds_is_replaced_too",),
    ),
    Mutation(
        "arguments that do not fit the other task keep a run as it is",
        "G1",
        "jobs/runs/renamed_tasks.py",
        "payload = schema.body(args, kwargs, embed, max_bytes=most)",
        'payload = row["payload"]',
        (
            f"{RUNS}arguments_that_do_not_fit_stay",
            f"{RUNS}a_moved_run_has_the_arguments_of_a_submit",
        ),
    ),
    Mutation(
        "in the admin, runs are moved to tasks that are offered, and to no others",
        "privilege",
        "jobs/admin/runs/run_task.py",
        "if name not in names:",
        "if False:",
        ("tests/jobs/admin/runs/test_run_task.py::test_a_run_is_moved_to_an_offered_task_only",),
    ),
    Mutation(
        "no run is moved to one of Fairshift's own tasks",
        "privilege",
        "jobs/runs/renamed_tasks.py",
        "if task.name.startswith(OWN):",
        "if False:",
        (f"{RUNS}nothing_is_moved_to_a_task_of_fairshift",),
        fails_with="DID NOT RAISE",
    ),
    Mutation(
        "the error of a run's last attempt stays when it is failed unstarted",
        "G1",
        "jobs/runs/renamed_tasks.py",
        "WHERE id = ANY(%s) AND error_type = '' AND error_message = ''",
        "WHERE id = ANY(%s)",
        (f"{RUNS}the_last_error_of_a_failed_run_stays",),
    ),
)
