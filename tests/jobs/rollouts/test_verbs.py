"""jobs/rollouts/verbs.py: who may approve a wave, and what becomes of the waves that are left."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs import Waves, submit_many
from jobs.core.errors import ActionRefused, OptionError
from jobs.models import AuditEntry, Owner, Rollout, Submission
from jobs.owners.tokens import make_token
from jobs.rollouts import verbs

CALLS = [{"x": number, "y": 0} for number in range(20)]


def rollout(owner: Owner, *, actor: Any = None, **waves: Any) -> Submission:
    return submit_many(
        "tests.add", CALLS, owner=owner, actor=actor, waves=Waves(sizes=[2, "100%"], **waves)
    )


def waiting(owner: Owner, *, actor: Any = None) -> Submission:
    """Submit two waves of which the second waits for an approval."""
    submission = rollout(owner, actor=actor, between="approval")
    Rollout.objects.filter(pk=submission.pk).update(state="waiting")
    return submission


@pytest.mark.parametrize(
    "who", ["submitter", "its token", "its submitter by token", "who has changed the waves"]
)
def test_who_has_submitted_or_changed_the_waves_does_not_approve(acme: Owner, who: str) -> None:
    """Neither by a token of theirs, nor the maker of a token that has submitted."""
    ann, bob, cy = (User.objects.create_superuser(name) for name in ("ann", "bob", "cy"))
    token = make_token("robot", scopes=["submit"], owner=acme, actor=ann).token
    who_is: dict[str, tuple[Any, Any]] = {
        "submitter": (ann, ann),
        "its token": (ann, token),
        "its submitter by token": (token, ann),
        "who has changed the waves": (cy, ann),
    }
    submitter, approver = who_is[who]
    submission = waiting(acme, actor=submitter)
    if submitter is cy:
        verbs.resize(submission, [5, "100%"], actor=approver)
    with pytest.raises(ActionRefused) as refused:
        verbs.release(submission, actor=approver)
    assert refused.value.code == "four_eyes"
    assert verbs.release(submission, actor=bob).wave == 2
    [entry] = AuditEntry.objects.filter(action="release wave")
    assert (entry.actor_name, entry.details) == ("bob", {"wave": 2})


@pytest.mark.parametrize("wave", ["3", "2/9", "x"])
def test_the_wave_that_was_seen_is_released(acme: Owner, wave: str) -> None:
    """An approval of another wave, or of one that was cut anew since, releases nothing."""
    submission = waiting(acme)
    with pytest.raises(ActionRefused, match="The next wave is 2/18"):
        verbs.release(submission, wave=wave)
    assert verbs.release(submission, wave="2/18").wave == 2


def test_a_repeated_approval_releases_nothing_more(acme: Owner) -> None:
    """Its wave has to end first."""
    submission = waiting(acme)
    verbs.resize(submission, [5, "100%"])
    assert verbs.release(submission).wave == 2
    with pytest.raises(ActionRefused, match="waits for an approval"):
        verbs.release(submission)


def test_the_waves_that_are_left_can_be_cut_anew(acme: Owner) -> None:
    """Parts are of the runs that are not released; a bad size changes nothing."""
    submission = rollout(acme)
    with pytest.raises(OptionError, match="are in no wave") as refused:
        verbs.resize(submission, [1])
    assert refused.value.option == "sizes"
    assert [wave["size"] for wave in Rollout.objects.get().waves] == [2, 18]
    verbs.resize(submission, [3, "50%", "100%"])
    waves = Rollout.objects.get().waves
    assert [wave["size"] for wave in waves] == [2, 3, 9, 6]
    ids = [str(run_id) for run_id in submission.runs.order_by("id").values_list("id", flat=True)]
    assert [wave["last"] for wave in waves] == [ids[1], ids[4], ids[13], ids[19]]


@pytest.mark.parametrize("verb", [verbs.pause, verbs.resume, verbs.release])
def test_a_submission_without_waves_is_refused(acme: Owner, verb: Any) -> None:
    """With a conflict."""
    submission = submit_many("tests.add", CALLS, owner=acme)
    with pytest.raises(ActionRefused):
        verb(submission)


def test_what_spreads_needs_targets_with_that_label(acme: Owner) -> None:
    """One target of each site is in the first wave."""
    for number, site in enumerate("aaab"):
        acme.targets.create(name=f"host-{number}", labels={"site": site})
    calls = [{"x": number, "y": 0} for number in range(4)]
    waves = Waves(sizes=[2, "100%"], spread="site")
    for target, problem in (("", "not all runs have a target"), ("other-{x}", "no target has")):
        with pytest.raises(OptionError, match=problem):
            submit_many("tests.add", calls, owner=acme, target=target, waves=waves)
    submission = submit_many("tests.add", calls, owner=acme, target="host-{x}", waves=waves)
    first = submission.runs.filter(state="queued").values_list("target__name", flat=True)
    assert set(first) == {"host-0", "host-3"}
