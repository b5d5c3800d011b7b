"""jobs/admin/owners/target.py: the form of a target."""

import json

import pytest
from django.test import Client
from django.urls import reverse

from jobs.models import Owner, Target

ADD = reverse("admin:jobs_target_add")


@pytest.mark.parametrize(
    "labels", [{str(number): "x" for number in range(33)}, {"a": 1}, {"a": "x" * 201}, ["a"], 5]
)
def test_labels_are_few_and_short(as_root: Client, acme: Owner, labels: object) -> None:
    """Each list of targets shows all of them: a megabyte of labels would spoil it for everybody."""
    sent = {"owner": acme.pk, "name": "fw-1", "labels": json.dumps(labels)}
    page = as_root.post(ADD, sent)
    assert page.status_code == 200 and "labels" in page.context["adminform"].form.errors
    assert not Target.objects.exists()
