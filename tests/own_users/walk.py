"""Walk through admin, pages and API as a person of this project; print what came of it as JSON.

Run it in the shell of `manage.py`: its settings are others than those of the tests.
"""

import json
from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment
from django.urls import get_resolver, reverse
from django.urls.exceptions import NoReverseMatch

from jobs.models import AuditEntry, Membership, Owner
from tests.browser.story import tell
from tests.jobs.admin.conftest import confirm

ANN, BOB = "ann@example.com", "bob@example.com"
PASSWORD = "a long password"
FILE = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:x
BEGIN:VEVENT
UID:1
DTSTART:20300101T020000Z
DTEND:20300101T030000Z
END:VEVENT
END:VCALENDAR
"""


def main(*, is_registered: bool) -> None:
    """Print addresses that failed, and what the verbs did."""
    call_command("migrate", verbosity=0)
    setup_test_environment()
    if is_registered:
        admin.site.register(get_user_model(), search_fields=["mail"])
    call_command("check")
    users: Any = get_user_model()
    ann = users.objects.create_superuser(mail=ANN, password=PASSWORD)
    users.objects.create(mail=BOB)
    acme = Owner.objects.create(slug="acme")
    Membership.objects.create(owner=acme, user=ann, role="admin")
    rows = tell(acme)
    client = Client(raise_request_exception=False)
    login = client.post(reverse("jobs:login"), {"username": ANN, "password": PASSWORD})
    assert login.status_code == 302
    wrong = {path: code for path in addresses(rows) if (code := status(client, path)) >= 500}
    print(json.dumps({"wrong": wrong, **acted(client, acme, rows)}))


def addresses(rows: dict[str, Any]) -> Iterator[str]:
    """Yield the address of each list, form and row of our admin, and of each page."""
    for model in apps.get_app_config("jobs").get_models():
        if admin.site.is_registered(model):
            name = f"admin:jobs_{model._meta.model_name}"
            yield reverse(f"{name}_changelist")
            if row := model._default_manager.first():
                yield reverse(f"{name}_change", args=[row.pk])
    for name in sorted(
        name for name in get_resolver("jobs.urls").reverse_dict if str(name) == name
    ):
        try:
            yield reverse(f"jobs:{name}")
        except NoReverseMatch:
            continue  # it needs a row
    yield reverse("jobs:owner", args=["acme"])
    for name in ("worker", "job", "calendar", "window", "webhook"):
        yield reverse(f"jobs:{name}", args=[rows[name]])


def status(client: Client, path: str) -> int:
    return client.get(path, follow=True).status_code


def acted(client: Client, acme: Owner, rows: dict[str, Any]) -> dict[str, Any]:
    """Use a form, verbs, an import and the API; return what holds then."""
    add_member(client, acme)
    confirm(client, reverse("admin:jobs_owner_actions", args=[acme.pk, "pause"]), reason="audit")
    client.post(reverse("jobs:owner_action", args=["acme", "resume"]), {"reason": "over"})
    imported = reverse("admin:jobs_calendar_import", args=[rows["calendar"]])
    sent = {
        "file": SimpleUploadedFile("x.ics", FILE.replace("\n", "\r\n").encode()),
        "effect": "window",
        "source": "x",
    }
    kept = client.post(imported, sent).context["kept"]
    return {
        "members": sorted(acme.memberships.values_list("user__mail", flat=True)),
        "audit": sorted(set(AuditEntry.objects.values_list("action", "actor_name"))),
        "import": client.post(imported, {"kept": kept}).status_code,
        "api": client.get("/api/v1/owners").status_code,
    }


def add_member(client: Client, acme: Owner) -> None:
    """Add bob by the form of the admin."""
    page = reverse("admin:jobs_owner_change", args=[acme.pk])
    shown = client.get(page).context
    formset = shown["inline_admin_formsets"][0].formset
    sent = dict(shown["adminform"].form.initial)
    for form in (shown["adminform"].form, formset.management_form, *formset.forms):
        sent |= {form.add_prefix(name): form[name].value() for name in form.fields}
    prefix = formset.prefix
    bob = get_user_model()._default_manager.get(mail=BOB)
    sent |= {f"{prefix}-0-id": acme.memberships.get().pk, f"{prefix}-TOTAL_FORMS": 2}
    sent |= {f"{prefix}-1-owner": acme.pk, f"{prefix}-1-user": bob.pk, f"{prefix}-1-role": "viewer"}
    client.post(page, {name: "" if value is None else value for name, value in sent.items()})
