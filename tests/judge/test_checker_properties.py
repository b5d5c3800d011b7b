"""The judge over random scenes: one planted defect is found, and nothing else."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.judge.scene import Scene, Story

Plan = list[list[tuple[list[str], str]]]
Defect = Callable[[Scene, str], set[str]]

ENDINGS = ("succeed", "fail", "lose", "cancel", "expire")
TRIES = ("fail", "worker lost", "child lost", "time limit", "lost unstarted", "give back")


def tell(story: Story, tries: list[str], ending: str) -> None:
    """Let a run go through its tries to its ending."""
    for happened in tries:
        if happened == "fail":
            story.start().fail(again=True)
        elif happened == "give back":
            story.admit().give_back()
        elif happened == "lost unstarted":
            story.admit().lose()
        else:
            story.start().lose(happened)
    match ending:
        case "succeed":
            story.start().succeed()
        case "fail":
            story.start().fail()
        case "lose":
            story.start().lose("child lost", again=False)
        case "cancel":
            story.start().cancel()
        case "expire" if tries:
            # A run that has been tried has met its deadline.
            story.start().succeed()
        case "expire":
            story.move("expired")


runs = st.tuples(st.lists(st.sampled_from(TRIES), max_size=4), st.sampled_from(ENDINGS))
submits = st.lists(st.lists(runs, min_size=1, max_size=3), min_size=1, max_size=4)


def told(plan: Plan) -> Scene:
    scene = Scene()
    for number, plans in enumerate(plan):
        stories = scene.submit(f"acme-{number}", runs=len(plans))
        for story, (tries, ending) in zip(stories, plans, strict=True):
            tell(story, tries, ending)
    return scene


def lose_the_end(scene: Scene, run_id: str) -> set[str]:
    """The run stays queued without end; its history agrees."""
    row = scene.runs[run_id]
    scene.runs[run_id] = replace(row, state="queued", history=row.history[:1])
    return {"lost"}


def forget_the_row(scene: Scene, run_id: str) -> set[str]:
    del scene.runs[run_id]
    return {"lost"}


def deny_the_submit(scene: Scene, run_id: str) -> set[str]:
    for place, event in enumerate(scene.submit_events):
        if event.event == "ok" and run_id in event.ids:
            scene.submit_events[place] = replace(event, event="failed")
    return {"ghosts"}


def start_once_more(scene: Scene, run_id: str) -> set[str]:
    token = max(scene.runs[run_id].token, 1)
    scene.log("start", pid=9999, run=run_id, token=token)
    return {"excess_starts", "tokens"}


def drop_a_move(scene: Scene, run_id: str) -> set[str]:
    row = scene.runs[run_id]
    scene.runs[run_id] = replace(row, history=row.history[:-1])
    return {"history"}


def lose_an_attempt(scene: Scene, run_id: str) -> set[str]:
    """A token without an attempt: the newest is taken away, or one is issued for nothing."""
    row = scene.runs[run_id]
    if row.token == 0:
        scene.runs[run_id] = replace(row, token=1)
    scene.attempts = [
        attempt
        for attempt in scene.attempts
        if (attempt.run_id, attempt.token) != (run_id, row.token)
    ]
    return {"attempts"}


def name_another_token(scene: Scene, run_id: str) -> set[str]:
    """The outcome that stands was written under a token that is not the row's."""
    row = scene.runs[run_id]
    scene.runs[run_id] = replace(row, outcome_token=row.token + 1)
    return {"stale"}


DEFECTS = (
    lose_the_end,
    forget_the_row,
    deny_the_submit,
    start_once_more,
    drop_a_move,
    lose_an_attempt,
    name_another_token,
)


@given(plan=submits, defect=st.sampled_from(DEFECTS), data=st.data())
def test_one_planted_defect_is_found(plan: Plan, defect: Defect, data: st.DataObject) -> None:
    """Among many clean runs it is found, under its name and with its run; no other is accused."""
    scene = told(plan)
    run_id = data.draw(st.sampled_from(sorted(scene.runs)))
    names = defect(scene, run_id)
    findings = scene.judged().findings
    named = {kind for kind, found in findings.items() if any(f.subject == run_id for f in found)}
    assert named & names, scene.judged().report()
    accused = {finding.subject for found in findings.values() for finding in found}
    assert accused <= {run_id} | set(members_of(scene, run_id)), scene.judged().report()


def members_of(scene: Scene, run_id: str) -> tuple[str, ...]:
    """Return the runs that were submitted together with this one."""
    return next(event.ids for event in scene.submit_events if run_id in event.ids)
