"""The rollout of a submit: which wave each run is in, and the row that says so."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, pairwise, repeat
from typing import Any
from uuid import UUID

from jobs.core import sql
from jobs.core.errors import OptionError
from jobs.models import ApiToken, Rollout, Submission, Target
from jobs.models.verbs import Actor
from jobs.rollouts.waves import Waves, counts_of, spread


def sizes_of(waves: Waves | None, total: int) -> list[int]:
    """Return the counts of runs of the waves; none without waves. Raises OptionError."""
    if waves is None:
        return []
    if not isinstance(waves, Waves):
        raise OptionError("waves", "is a jobs.Waves")
    return counts_of(waves.sizes, total)


def spread_ids(ids: Sequence[UUID], target_ids: Sequence[int | None], *, by: str) -> list[UUID]:
    """Return the ids so that the lowest go to one run of each value of a label of targets."""
    if None in target_ids:
        raise OptionError("waves.spread", "names a label of targets; not all runs have a target")
    rows = Target.objects.filter(id__in=set(target_ids)).values_list("id", "labels")
    values: dict[int | None, Any] = {target_id: labels.get(by) for target_id, labels in rows}
    if not any(values.values()):
        raise OptionError("waves.spread", f"is {by!r}, a label that no target has")
    order = spread(repr(values.get(one)) for one in target_ids)
    placed = dict(zip(order, ids, strict=True))
    return [placed[place] for place in range(len(ids))]


def waves_of(ids: Sequence[UUID], sizes: Sequence[int]) -> list[int]:
    """Return the wave of each run, from 1: the lowest ids are in the first."""
    if not sizes:
        return [1] * len(ids)
    numbers = chain.from_iterable(repeat(wave, size) for wave, size in enumerate(sizes, 1))
    wave_of = dict(zip(sorted(ids), numbers, strict=True))
    return [wave_of[run_id] for run_id in ids]


def begin(
    submission: Submission,
    waves: Waves,
    ids: Sequence[UUID],
    sizes: Sequence[int],
    *,
    actor: Actor,
    deadline: float | None,
) -> None:
    """Store the rollout of a submission whose runs have these ids, in order."""
    pause, token = waves.pause, actor if isinstance(actor, ApiToken) else None
    first, *later = waves_stored(ids, sizes)
    Rollout.objects.create(
        submission=submission,
        owner_id=submission.owner_id,
        waves=[{**first, "released_at": sql.now().isoformat(), "released_by": ""}, *later],
        released_to=first["last"],
        stop_at="" if waves.stop_at is None else str(waves.stop_at),
        between_seconds=int(pause.total_seconds()) if pause else None,
        needs_approval=waves.needs_approval,
        deadline_seconds=deadline,
        requested_by_id=actor.pk if actor is not None and token is None else None,
        requested_by_token=token,
    )


def waves_stored(ids: Sequence[UUID], sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return waves as they are stored, of runs with these ids, in order."""
    return [
        {"size": end - start, "first": str(ids[start]), "last": str(ids[end - 1])}
        for start, end in pairwise(accumulate(sizes, initial=0))
    ]
