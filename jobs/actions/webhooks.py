"""Actions on webhooks."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, ConfigDict, Field

from jobs.actions.common import change, deletion, disable_and_enable, enabled
from jobs.actions.declared import Action, Call, Creation, Noun, Reason, Shown, sentence
from jobs.actions.interests import Events, ForAll, JobId, Name, States, Tasks, Whose, without_owner
from jobs.actions.texts import Text
from jobs.core.phrases import Phrase, phrase
from jobs.models import Scope, WebhookEndpoint
from jobs.models.webhook import URL_MOST
from jobs.system.notices import endpoints
from jobs.system.notices.endpoints import OLD_KEY_MOST, OLD_KEY_SECONDS, REPLAYS_MOST, MadeEndpoint

Deliveries = Annotated[
    list[Annotated[int, Field(ge=1, le=2**63 - 1)]],
    Field(min_length=1, max_length=REPLAYS_MOST),
]


Url = Annotated[
    Text,
    Field(min_length=1, max_length=URL_MOST),
    Shown(
        _("URL"),
        _("https, at a public address; others need FAIRSHIFT['HTTP_ALLOWED_HOSTS']."),
    ),
]
HasDetails = Annotated[
    bool,
    Shown(_("With details"), _("Send arguments, results, error texts and last log lines, too.")),
]


class WebhookToCreate(BaseModel):
    """An endpoint to be created. Empty filters pass everything."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    url: Url
    events: Events
    owner: Whose = None
    is_for_all: ForAll = False
    tasks: Tasks = []
    job: JobId | None = None
    states: States = []
    has_details: HasDetails = False


class WebhookChange(Reason):
    """The fields to change."""

    name: Name = ""
    url: Url = ""
    events: Events = []
    tasks: Tasks = []
    job: JobId | None = None
    states: States = []
    has_details: HasDetails = False
    is_active: bool = True


class Replay(Reason):
    """The deliveries to send again."""

    deliveries: Deliveries | None = Field(
        None, description=f"Null: those that failed, the oldest {REPLAYS_MOST}."
    )


class KeyRotation(Reason):
    """How long the old key signs, too."""

    old_key_seconds: Annotated[float, Shown(_("Seconds that the old key stays valid"))] = Field(
        OLD_KEY_SECONDS, ge=0, le=OLD_KEY_MOST
    )


def _replayed(_webhook: Any, count: int) -> Phrase:
    return phrase(_("%(count)s deliveries are sent again."), count=count)


def _rotate(webhook: Any, call: Call) -> MadeEndpoint:
    seconds = call.body.old_key_seconds
    return endpoints.rotate_key(webhook, old_key_seconds=seconds, **call.audited)


_action = partial(Action, scope=Scope.ADMIN, permission="jobs.change_webhookendpoint")
KEY_SHOWN: Final = _(
    "This key is shown only now. Give it to the receiver, which verifies signatures with it."
)
_OFF: Final = _("%(row)s is disabled: enable it first.")

WEBHOOKS: Final = Noun(
    name="webhook",
    rows=lambda: WebhookEndpoint.objects.select_related("owner"),
    view="jobs.view_webhookendpoint",
    seen_with=(Scope.READ, Scope.ADMIN),
    creation=Creation(
        label=_("Create a webhook"),
        explains=_("Its key is shown once, when it is created."),
        permission="jobs.add_webhookendpoint",
        body=WebhookToCreate,
        make=lambda body, owner, actor: endpoints.make_endpoint(
            without_owner(body), owner=owner, actor=actor
        ),
        row=lambda made: made.endpoint,
        secret=lambda made: str(made.secret),
        done=sentence(KEY_SHOWN),
    ),
    actions=(
        change(
            explains=_("If it sends more, or elsewhere, it sends what you may see from now on."),
            permission="jobs.change_webhookendpoint",
            body=WebhookChange,
            act=lambda webhook, call: endpoints.change_endpoint(
                webhook, call.given, **call.audited
            ),
        ),
        _action(
            name="test",
            label=_("Send a test"),
            explains=_("An event of type webhook.test is sent before all others."),
            applies=enabled,
            refused=_OFF,
            act=lambda webhook, call: endpoints.send_test(webhook, **call.audited),
            done=sentence(_("A test is sent to %(row)s.")),
        ),
        _action(
            name="replay",
            label=_("Send failed deliveries again"),
            explains=_("They keep their ids, by which the receiver knows repeats."),
            body=Replay,
            applies=enabled,
            refused=_OFF,
            act=lambda webhook, call: endpoints.replay(
                webhook, call.body.deliveries, **call.audited
            ),
            done=_replayed,
        ),
        _action(
            name="rotate",
            label=_("Rotate the key"),
            explains=_("The new key is shown once. Until its end, the old key signs, too."),
            body=KeyRotation,
            initial=lambda _webhook, _access: {"old_key_seconds": round(OLD_KEY_SECONDS)},
            act=_rotate,
            secret=lambda made: str(made.secret),
            done=sentence(KEY_SHOWN),
        ),
        *disable_and_enable(
            _action,
            endpoints.change_endpoint,
            off=_("Waiting deliveries are not sent, and new events are not stored."),
            on=_("Waiting deliveries are sent. It sends what you may see from now on."),
        ),
        deletion(
            explains=_("Its deliveries are deleted, too. Waiting ones are not sent."),
            permission="jobs.delete_webhookendpoint",
            act=lambda webhook, call: endpoints.delete_endpoint(webhook, **call.audited),
        ),
    ),
)
