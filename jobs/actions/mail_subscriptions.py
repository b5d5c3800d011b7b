"""Actions on mail subscriptions."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.utils.translation import gettext_noop as _

from jobs.actions.declared import Action, Noun, told
from jobs.actions.switches import disable_and_enable
from jobs.models import MailSubscription, Scope
from jobs.system.notices import mails

_action = partial(Action, scope=Scope.ADMIN, permission="jobs.change_mailsubscription")

MAIL_SUBSCRIPTIONS: Final = Noun(
    name="mail_subscription",
    rows=lambda: MailSubscription.objects.select_related("owner"),
    view="jobs.view_mailsubscription",
    seen_with=(Scope.READ, Scope.ADMIN),
    actions=(
        *disable_and_enable(
            _action,
            mails.change_subscription,
            off=_("No mails are sent, and new events are not stored."),
            on=_("Mails are sent again. They tell what you may see."),
        ),
        _action(
            name="delete",
            label=_("Delete"),
            explains=_("Mails that wait are not sent."),
            permission="jobs.delete_mailsubscription",
            act=lambda mail, call: mails.delete_subscription(mail, **call.audited),
            done=told(_("%(row)s is deleted.")),
            is_destructive=True,
            method="DELETE",
        ),
    ),
)
