"""Actions on mail subscriptions."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from django.conf import settings
from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, ConfigDict, Field

from jobs.actions.common import change, deletion, disable_and_enable
from jobs.actions.declared import Action, Creation, Noun, Reason, Shown, sentence
from jobs.actions.interests import Events, ForAll, JobId, Name, States, Tasks, Whose, without_owner
from jobs.actions.texts import Text
from jobs.models import MailSubscription, Scope
from jobs.system.notices import mails
from jobs.system.notices.mails import ADDRESSES_MOST

Address = Annotated[Text, Field(min_length=3, max_length=254)]
Addresses = Annotated[
    list[Address],
    Field(min_length=1, max_length=ADDRESSES_MOST),
    Shown(_("Addresses"), _("Separated by commas.")),
]
Language = Annotated[
    Text,
    Field(max_length=16, description="A code, such as en or de."),
    Shown(_("Language"), choices=lambda: settings.LANGUAGES),
]


class MailSubscriptionToCreate(BaseModel):
    """A subscription to be created. Empty filters pass everything."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    addresses: Addresses
    events: Events
    owner: Whose = None
    is_for_all: ForAll = False
    language: Language = "en"
    tasks: Tasks = []
    job: JobId | None = None
    states: States = []


class MailSubscriptionChange(Reason):
    """The fields to change; the reason is for the audit, and shown while it is disabled."""

    name: Name = ""
    addresses: Addresses = []
    events: Events = []
    language: Language = ""
    tasks: Tasks = []
    job: JobId | None = None
    states: States = []
    is_active: bool = True


_action = partial(Action, scope=Scope.ADMIN, permission="jobs.change_mailsubscription")

MAIL_SUBSCRIPTIONS: Final = Noun(
    name="mail_subscription",
    rows=lambda: MailSubscription.objects.select_related("owner"),
    view="jobs.view_mailsubscription",
    seen_with=(Scope.READ, Scope.ADMIN),
    creation=Creation(
        label=_("Create a mail subscription"),
        explains=_("Mails tell what you may see."),
        permission="jobs.add_mailsubscription",
        body=MailSubscriptionToCreate,
        make=lambda body, owner, actor: mails.make_subscription(
            without_owner(body), owner=owner, actor=actor
        ),
        done=sentence(_("%(row)s is created.")),
    ),
    actions=(
        change(
            explains=_("If it tells more, or others, it tells what you may see from now on."),
            permission="jobs.change_mailsubscription",
            body=MailSubscriptionChange,
            act=lambda mail, call: mails.change_subscription(mail, call.given, **call.audited),
        ),
        *disable_and_enable(
            _action,
            mails.change_subscription,
            off=_("No mails are sent, and new events are not stored."),
            on=_("Mails are sent again. They tell what you may see."),
        ),
        deletion(
            explains=_("Mails that wait are not sent."),
            permission="jobs.delete_mailsubscription",
            act=lambda mail, call: mails.delete_subscription(mail, **call.audited),
        ),
    ),
)
