"""Targets and their groups: chosen or named, and gated again when they change."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.models import Owner, Target, TargetGroup

ADD = "admin:jobs_targetgroup_add"


@pytest.fixture
def targets(acme: Owner, stranger: Owner) -> list[Target]:
    """Three switches of acme, and one of the stranger by the name of the first."""
    Target.objects.create(owner=stranger, name="sw-1")
    return [Target.objects.create(owner=acme, name=f"sw-{number}") for number in (1, 2, 3)]


def errors(answer: Any) -> str:
    return str(answer.context["adminform"].form.errors)


def test_targets_are_chosen_and_pasted(as_root: Client, acme: Owner, targets: list[Target]) -> None:
    """Names are of the group's owner; empty lines and repetitions mean nothing."""
    first, second, third = targets
    sent = {"owner": acme.pk, "name": "all", "targets": [first.pk], "names": " sw-2 \n\nsw-2\nsw-1"}
    answer = as_root.post(reverse(ADD), sent)
    assert answer.status_code == 302, errors(answer)
    group = TargetGroup.objects.get()
    assert set(group.targets.all()) == {first, second}
    before = Owner.objects.get(pk=acme.pk).calendar_version
    url = reverse("admin:jobs_targetgroup_change", args=[group.pk])
    seen = as_root.get(url).context["adminform"].form["seen"].value()
    answer = as_root.post(url, {"name": "all", "targets": [third.pk], "names": "", "seen": seen})
    assert answer.status_code == 302, errors(answer)
    assert set(group.targets.all()) == {third}
    assert Owner.objects.get(pk=acme.pk).calendar_version > before
    again = as_root.post(url, {"name": "all", "targets": [first.pk], "names": "", "seen": seen})
    assert "changed this since" in errors(again) and set(group.targets.all()) == {third}
    assert (
        as_root.post(
            reverse("admin:jobs_targetgroup_delete", args=[group.pk]), {"post": "yes"}
        ).status_code
        == 302
    )
    assert not TargetGroup.objects.exists()


def test_names_that_nobody_has_are_told(
    as_root: Client, acme: Owner, stranger: Owner, targets: list[Target]
) -> None:
    """The first ten of them, and how many more; targets of another owner are refused."""
    names = "\n".join(["sw-1", *(f"<b>{number:02}" for number in range(12))])
    answer = as_root.post(reverse(ADD), {"owner": acme.pk, "name": "all", "names": names})
    assert "&lt;b&gt;09 and 2 more" in errors(answer) and "<b>0" not in answer.content.decode()
    foreign = Target.objects.get(owner=stranger)
    sent = {"owner": acme.pk, "name": "all", "targets": [foreign.pk], "names": ""}
    assert "Not owned by acme: sw-1" in errors(as_root.post(reverse(ADD), sent))
    assert not TargetGroup.objects.exists()


@pytest.mark.parametrize(
    "labels", [{str(number): "x" for number in range(33)}, {"a": 1}, {"a": "x" * 201}, ["a"], 5]
)
def test_labels_are_few_and_short(as_root: Client, acme: Owner, labels: object) -> None:
    """Each list of targets shows all of them: a megabyte of labels would spoil it for everybody."""
    sent = {"owner": acme.pk, "name": "fw-1", "labels": json.dumps(labels)}
    page = as_root.post(reverse("admin:jobs_target_add"), sent)
    assert page.status_code == 200 and "labels" in page.context["adminform"].form.errors
    assert not Target.objects.exists()
