"""Actions on owners."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field, field_validator

from jobs.actions.common import change
from jobs.actions.declared import (
    HIDDEN,
    Action,
    Call,
    Creation,
    Noun,
    Reason,
    Shown,
    initial_of,
    sentence,
)
from jobs.actions.texts import Moment, Slug, Text
from jobs.core.errors import AccessDenied
from jobs.models import Owner, Scope
from jobs.models.access import Access, access_of
from jobs.models.fields import (
    COUNT_MOST,
    DAYS_MOST,
    OBJECTIVE_PERCENT_LEAST,
    OBJECTIVE_PERCENT_MOST,
    OBJECTIVE_SECONDS_MOST,
    WEIGHT_MOST,
)
from jobs.owners.limits import LIMITS, pause_owner, resume_owner
from jobs.owners.registry import add_owner, change_owner

AS_INSTALLED: Final = "Days that its runs stay; null: as the installation has it."
OBJECTIVE: Final = (
    "The wait in seconds, from when a run may start, within which `wait_objective_percent` of the "
    "starts are to happen; null: no objective."
)
OwnerName = Annotated[Text, Field(max_length=200)]
Zone = Annotated[Text, Field(max_length=64, description="An IANA time zone.")]
Weight = Annotated[int, Field(ge=1, le=WEIGHT_MOST, strict=True)]
Percent = Annotated[
    float, Field(ge=OBJECTIVE_PERCENT_LEAST, le=OBJECTIVE_PERCENT_MOST, allow_inf_nan=False)
]
_Limit = Annotated[int, Field(ge=1, le=COUNT_MOST, strict=True)]
_Days = Annotated[int, Field(ge=1, le=DAYS_MOST, strict=True)]
_DAYS: Final = _("1 to 3660. Empty: as the installation has it.")
_NAME: Final = Shown(_("Name"))
_ZONE: Final = Shown(_("Time zone"))
_WEIGHT: Final = Shown(_("Weight"), _("Its share of the workers beside the weights of others."))
_PERCENT: Final = Shown(
    _("Percent of the starts"), _("The part that starts within that wait: 50 to 99.9.")
)


class OwnerPause(Reason):
    """A pause: no further run of the owner starts; active runs continue."""

    until: Annotated[Moment | None, Shown(_("Until"), _("Empty: until a person resumes it."))] = (
        Field(None, description="Null: until it is resumed.")
    )


class OwnerChange(Reason):
    """The facts of an owner to be changed; those that are absent stay.

    Weight, limits and days are changed by admins of the installation only.
    """

    name: Annotated[OwnerName | None, _NAME] = None
    zone: Annotated[Zone | None, _ZONE] = None
    weight: Annotated[Weight | None, _WEIGHT] = None
    max_running: Annotated[_Limit | None, Shown(_("Most runs at once"), _("Empty: no limit."))] = (
        Field(None, description="Null: no limit.")
    )
    rate_limit_per_minute: Annotated[
        _Limit | None, Shown(_("Most starts a minute"), _("Empty: no limit."))
    ] = Field(None, description="Null: no limit.")
    run_days: Annotated[_Days | None, Shown(_("Days that ended runs stay"), _DAYS)] = Field(
        None, description=AS_INSTALLED
    )
    failed_run_days: Annotated[_Days | None, Shown(_("Days that failed runs stay"), _DAYS)] = Field(
        None, description=AS_INSTALLED
    )
    wait_objective_seconds: Annotated[
        Annotated[int, Field(ge=1, le=OBJECTIVE_SECONDS_MOST, strict=True)] | None,
        Shown(
            _("Longest wait in seconds"),
            _("From when a run may start to its start: 1 to 86400. Empty: no objective."),
        ),
    ] = Field(None, description=OBJECTIVE)
    wait_objective_percent: Annotated[Percent | None, _PERCENT] = None

    @field_validator("name", "zone", "weight", "wait_objective_percent")
    @classmethod
    def _is_given(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("may not be null")
        return value


class _Slug(BaseModel):
    slug: Annotated[Slug, Shown(_("Slug"), _("Its short name in addresses and lock keys."))]


class OwnerToCreate(OwnerChange, _Slug):
    """An owner to be created."""

    name: Annotated[OwnerName, _NAME] = ""
    zone: Annotated[Zone, _ZONE] = "UTC"
    weight: Annotated[Weight, _WEIGHT] = 1
    wait_objective_percent: Annotated[Percent, _PERCENT] = 95


def _change(owner: Any, call: Call) -> None:
    facts = call.given
    if set(facts) & set(LIMITS) and not access_of(call.actor).has(Scope.ADMIN):
        raise AccessDenied(Scope.ADMIN.value, "the whole installation")
    change_owner(owner, **facts, **call.audited)


def _facts(owner: Any, by: Access) -> dict[str, Any]:
    facts = initial_of(OwnerChange, owner, by)
    return facts if by.has(Scope.ADMIN) else facts | dict.fromkeys(LIMITS, HIDDEN)


OWNERS: Final = Noun(
    name="owner",
    rows=Owner.objects.all,
    key="slug",
    owner="pk",
    key_kind="str",
    view="jobs.view_owner",
    creation=Creation(
        label=_("Create an owner"),
        explains=_("Only admins of the installation create owners."),
        permission="jobs.add_owner",
        body=OwnerToCreate,
        make=lambda body, _owner, actor: add_owner(**body.model_dump(), actor=actor),
        done=sentence(_("%(row)s is created.")),
    ),
    actions=(
        change(
            explains=_("With its weight, the shares of other owners change. Active runs continue."),
            permission="jobs.change_owner",
            body=OwnerChange,
            initial=_facts,
            act=_change,
        ),
        Action(
            name="pause",
            label=_("Pause"),
            explains=_("No further run starts. Runs that a worker has started continue."),
            scope=Scope.OPERATE,
            permission="jobs.pause_owner",
            body=OwnerPause,
            act=lambda owner, call: pause_owner(owner, until=call.body.until, **call.audited),
            done=sentence(_("%(row)s is paused: no further run starts.")),
        ),
        Action(
            name="resume",
            label=_("Resume"),
            explains=_("Waiting runs may start at once."),
            scope=Scope.OPERATE,
            permission="jobs.pause_owner",
            applies=lambda owners: owners.paused(),
            refused=_("%(row)s is not paused."),
            is_repeatable=True,
            act=lambda owner, call: resume_owner(owner, **call.audited),
            done=sentence(_("%(row)s is resumed: waiting runs may start at once.")),
        ),
    ),
)
