"""fleet/router.py: every task call has an owner, found in one order; bad names are refused."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from celery import Celery, Task, chain, chord, group
from celery.app.trace import build_tracer
from celery.signals import before_task_publish

from fleet import HEADER, RouteError, acting_for, owner_header, route_calls
from fleet.contract import is_hint
from fleet.router import route_of

RUN = "01987f3c-0000-7000-8000-000000000001"
ADMITTED = {
    "owner": "acme",
    "submission": 7,
    "run": RUN,
    "token": 4,
    "attempt": 1,
    "policy": {"max_attempts": 3},
}
SHARED = {"owner": "shared", "submission": ""}
ACME = {"owner": "acme", "submission": ""}
ACME_7 = {"owner": "acme", "submission": "7"}
DOOR = {**ACME_7, "lock": "door"}
NORTHWIND = {"owner": "northwind", "submission": ""}


def nothing(*_args: Any) -> None: ...


class World:
    """An app that records published messages, with tasks that run here as in a worker."""

    def __init__(self, app: Celery) -> None:
        self.app = app
        self.sent: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.call = self.task(nothing)

    def task(self, function: Callable[..., Any], **options: Any) -> Task:
        name = f"tests.router.{len(self.app.tasks)}"
        return self.app.task(shared=False, name=name, **options)(function)

    def said(self) -> list[Any]:
        """Return the headers of all messages since the last call."""
        sent, self.sent = self.sent, []
        return [headers[HEADER] for headers, _ in sent]

    def run(self, task: Task, *args: Any, facts: Any = None, **request: Any) -> None:
        """Trace a task as a pool does, after a message with these facts."""
        trace = build_tracer(task.name, task, app=self.app)
        trace(RUN, args, {}, {"delivery_info": {}, HEADER: facts, **request})


@pytest.fixture
def world() -> Iterator[World]:
    route_calls()
    with Celery(
        "router", broker="memory://", backend="cache+memory://", set_as_current=False
    ) as app:
        app.conf.task_ignore_result = True
        world = World(app)

        def look(headers: Any = None, properties: Any = None, **_signal: Any) -> None:
            world.sent.append((dict(headers), dict(properties)))

        before_task_publish.connect(look, weak=False)
        yield world
        before_task_publish.disconnect(look)


@pytest.mark.parametrize(
    ("parent", "scope", "own", "owner"),
    [
        (None, None, None, SHARED),
        (None, None, DOOR, DOOR),
        (None, NORTHWIND, None, NORTHWIND),
        (None, NORTHWIND, DOOR, DOOR),
        (ACME, None, None, ACME),
        (ACME, None, NORTHWIND, NORTHWIND),
        (ACME, NORTHWIND, None, NORTHWIND),  # a task of the platform may act for a customer
        (ACME, NORTHWIND, DOOR, DOOR),
    ],
)
def test_the_owner_of_a_call(world: World, parent: Any, scope: Any, own: Any, owner: Any) -> None:
    """What the call says itself comes first, then its scope, then the task that makes it.

    Other headers of the caller stay.
    """
    headers = {"trace": "x", **(owner_header(**own) if own else {})}

    def act() -> None:
        with acting_for(**scope) if scope else nullcontext():
            world.call.apply_async(headers=headers)

    if parent:
        world.run(world.task(act), facts=parent)
    else:
        act()
    assert world.sent[0][0]["trace"] == "x"
    assert world.said() == [owner]


def test_a_scope_owns_the_calls_that_are_made_in_it(world: World) -> None:
    """Plain calls, groups, chords and chains; until it is left, by an error too."""
    call = world.call
    with acting_for("acme", submission="7"):
        call.delay()
        group(call.s(), call.s()).delay()
        chain(call.s(), call.s()).delay()
        chord([call.s(), call.s()], call.s()).delay()
    assert world.said() == [ACME_7] * 6
    with pytest.raises(LookupError), acting_for("acme"):
        raise LookupError
    call.delay()
    world.app.send_task("tests.unknown")
    assert world.said() == [SHARED, SHARED]


def test_scopes_nest_and_the_innermost_counts_whole(world: World) -> None:
    """Nothing of the outer one shines through; it is back afterwards."""
    with acting_for("acme", submission=7, lock="door"):
        with acting_for("northwind"):
            world.call.delay()
        world.call.delay()
    assert world.said() == [NORTHWIND, DOOR]


def test_a_scope_decorates(world: World) -> None:
    """A view, for example."""

    @acting_for("acme")
    def view() -> None:
        world.call.delay()

    view()
    view()
    assert world.said() == [ACME, ACME]


def test_threads_and_async_tasks_have_scopes_of_their_own(world: World) -> None:
    """Those that run at the same time do not meet; a copied context takes its scope along."""

    async def act(owner: str) -> None:
        with acting_for(owner):
            await asyncio.sleep(0.01)
            world.call.delay()

    async def both() -> None:
        await asyncio.gather(act("acme"), act("northwind"))
        world.call.delay()

    asyncio.run(both())
    assert [facts["owner"] for facts in world.said()] == ["acme", "northwind", "shared"]
    with acting_for("acme"):
        copied = contextvars.copy_context()
        for target in (world.call.delay, lambda: copied.run(world.call.delay)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    assert [facts["owner"] for facts in world.said()] == ["shared", "acme"]


@pytest.mark.parametrize("facts", [ACME_7, DOOR, ADMITTED])
def test_a_child_inherits_owner_and_submission(world: World, facts: dict[str, Any]) -> None:
    """Of a plain task and of a durable run; groups, chains and chords, whatever headers they have.

    Not the lock, for which it would wait while its parent runs; and never the run: the child of
    a durable run is no hint.
    """
    call = world.call

    def parent() -> None:
        call.delay()
        call.apply_async(headers={"trace": "x"})
        group(call.s(), call.s()).delay()
        chain(call.s(), call.s()).delay()
        chord([call.s()], call.s()).delay()

    world.run(world.task(parent), facts=facts)
    assert world.said() == [ACME_7] * 6


def test_callbacks_and_later_links_inherit_too(world: World) -> None:
    """Celery sends them after the task's body."""
    link, later = world.call.s(), world.call.s()
    task = world.task(nothing)
    world.run(task, facts=ACME_7, callbacks=[dict(link)], chain=[dict(later)])
    assert world.said() == [ACME_7, ACME_7]


def test_a_function_call_of_a_task_inherits_through(world: World) -> None:
    """A task that another one, or itself, calls as a function or runs eagerly has its owner."""

    def inner() -> None:
        world.call.delay()

    def outer(task: Task, depth: int = 0) -> None:
        called()
        called.apply()
        if depth < 1:
            task.apply((depth + 1,))

    called = world.task(inner)
    world.run(world.task(outer, bind=True), facts=ACME)
    assert world.said() == [ACME] * 4


def test_a_retry_keeps_owner_and_lock(world: World) -> None:
    """It is the same call again, also when a scope was entered in between."""

    def fail(task: Task) -> None:
        with acting_for("northwind"):
            raise task.retry(countdown=1)

    world.run(world.task(fail, bind=True), facts=DOOR)
    assert world.said() == [DOOR]


def test_a_scope_s_priority_is_for_calls_without_one(world: World) -> None:
    """9 is highest, which Celery's Redis calls 0; a call's own, or its task's, stays."""
    urgent = world.task(nothing, priority=5)
    with acting_for("acme", priority=9):
        world.call.delay()
        world.call.apply_async(priority=4)
        urgent.delay()
        world.call.apply_async(headers=owner_header("northwind"))
    world.call.delay()
    assert [properties.get("priority") for _, properties in world.sent] == [0, 4, 5, None, None]


def test_a_hint_stays_as_it_is(world: World) -> None:
    """Its row knows its owner, whoever publishes it."""
    hint = {"owner": "acme", "submission": None, "run": RUN, "token": 4}
    with acting_for("northwind"):
        world.call.apply_async(task_id=RUN, headers={HEADER: hint})
    assert world.said() == [hint]


@pytest.mark.parametrize(
    ("facts", "task_id"),
    [({"owner": "acme", "submission": 7, "run": RUN, "token": 4}, "another"), (ADMITTED, RUN)],
)
def test_a_copied_header_makes_no_hint(world: World, facts: dict[str, Any], task_id: str) -> None:
    """A task that passes on its request's headers makes a plain call of the same owner."""
    world.call.apply_async(task_id=task_id, headers={HEADER: facts})
    assert not is_hint(world.sent[0][0])
    assert world.said() == [ACME_7]


@pytest.mark.parametrize(
    ("bad", "field", "limit"),
    [
        ({"owner": ""}, "owner", "1 to 100 letters"),
        ({"owner": "-acme"}, "owner", "begins with a letter or digit"),
        ({"owner": "a" * 101}, "owner", "1 to 100 letters"),
        ({"owner": "acme\n"}, "owner", "1 to 100 letters"),
        ({"owner": "ac|me"}, "owner", "1 to 100 letters"),
        ({"owner": None}, "owner", "1 to 100 letters"),
        ({"submission": "x" * 101}, "submission", "at most 100 characters"),
        ({"submission": "\x00"}, "submission", "printable"),
        ({"submission": 1.5}, "submission", "no text"),
        ({"lock": "x" * 201}, "lock", "at most 200 characters"),
        ({"lock": 7}, "lock", "no text"),
        ({"priority": 10}, "priority", "from 0 to 9"),
        ({"priority": -1}, "priority", "from 0 to 9"),
        ({"priority": "high"}, "priority", "from 0 to 9"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_field(
    world: World, bad: dict[str, Any], field: str, limit: str
) -> None:
    """With the limit, before the block is entered; the same holds for a single call."""
    given = {"owner": "acme", **bad}
    with pytest.raises(RouteError, match=rf"^{field}: .*{limit}"), acting_for(**given):
        world.call.delay()
    if "priority" not in bad:
        with pytest.raises(RouteError, match=rf"^{field}: "):
            owner_header(**given)
    assert world.said() == []


@pytest.mark.parametrize(
    "facts",
    [
        "acme",
        ["acme"],
        {},
        {"owner": None},
        {"owner": "a|b"},
        {"owner": {"$gt": ""}},
        {"owner": "acme", "submission": ["7"]},
        {"owner": "acme", "submission": "x" * 101},
        {"owner": "acme", "lock": 3},
        {"owner": "acme", "lock": "\n"},
    ],
)
def test_a_foreign_header_that_cannot_be_is_as_none(world: World, facts: Any) -> None:
    """The call is published, in the scope's name if there is one; read back, it is shared."""
    world.call.apply_async(headers={HEADER: facts})
    with acting_for("acme"):
        world.call.apply_async(headers={HEADER: facts})
    assert world.said() == [SHARED, ACME]
    assert route_of({HEADER: facts}).owner == "shared"


def test_a_lock_is_its_owner_s_own() -> None:
    """Two owners with the same text do not share it, and no text reaches another owner's name."""
    routes = [route_of({HEADER: owner_header(who, lock="door")[HEADER]}) for who in ("a", "b")]
    assert [route.lock_key for route in routes] == ["a:door", "b:door"]
    assert route_of({HEADER: {"owner": "a:b", "lock": "c"}}).lock_key == ""
    assert route_of({}).lock_key == ""
