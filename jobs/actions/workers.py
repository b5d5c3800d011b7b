"""Actions on workers. All owners share a worker, so they need a scope for the installation."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.utils.translation import gettext_noop as _

from jobs.actions.declared import Action, Noun, sentence
from jobs.models import Scope, Worker
from jobs.system.draining import drain_worker, undrain_worker

_action = partial(
    Action,
    scope=Scope.OPERATE,
    permission="jobs.change_worker",
    applies=lambda workers: workers.beating(),
)

WORKERS: Final = Noun(
    name="worker",
    rows=Worker.objects.all,
    owner=None,
    key_kind="uuid",
    view="jobs.view_worker",
    actions=(
        _action(
            name="drain",
            label=_("Drain"),
            explains=_(
                "From its next heartbeat it takes no more runs, ends those that it has, and gives"
                " back those that wait in it. It stays, and can take work again."
            ),
            offered=lambda workers: workers.beating().filter(draining_since=None),
            refused=_("Worker %(row)s has stopped or was lost, or drains already."),
            act=lambda worker, call: drain_worker(worker, **call.audited),
            done=sentence(_("%(row)s drains.")),
        ),
        _action(
            name="undrain",
            label=_("Take work again"),
            explains=_("From its next heartbeat it takes runs from the queues that it had before."),
            offered=lambda workers: workers.beating().exclude(draining_since=None),
            refused=_("Worker %(row)s has stopped or was lost, or takes work already."),
            act=lambda worker, call: undrain_worker(worker, **call.audited),
            done=sentence(_("%(row)s takes work again.")),
        ),
    ),
)
