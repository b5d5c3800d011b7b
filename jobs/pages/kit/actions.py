"""Actions on pages: one view asks before an action on a row, and performs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import DataError
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, ngettext

from jobs.actions import Action, Done, Noun, available, find, perform, problem_of, refuse_unless
from jobs.core import barrier
from jobs.core.errors import AccessDenied, FairshiftError, NotFound, PermissionMissing
from jobs.core.language import in_language, number
from jobs.models import Run
from jobs.pages.kit import nav
from jobs.pages.kit.acts import done, failed
from jobs.pages.kit.body_form import BodyForm, form_of
from jobs.pages.kit.errors import forbidden, not_found
from jobs.pages.kit.visit import Visit, page

View = Callable[..., HttpResponse]
SELECTED: Final = 10_000
"""Most rows of one selection."""
BUDGET_SECONDS: Final = 20.0
"""How long one request performs an action on selected rows."""


def action_view(noun: Noun) -> View:
    """Return the view of all actions of a noun; its address ends with the action's name."""

    @page(noun.section or noun.plural, permission=noun.view, methods=("GET", "POST"))
    def view(visit: Visit, key: Any, name: str) -> HttpResponse:
        action = noun.action(name)
        if action is None:
            raise not_found()
        try:
            row = find(noun, key, by=visit.access)
            refuse_unless(noun, action, row, by=visit.access)
        except NotFound:
            raise not_found() from None
        except (AccessDenied, PermissionMissing):
            raise forbidden() from None
        return _asked(visit, noun, action, row)

    return view


def selection_view(noun: Noun) -> View:
    """Return the view of a noun's actions on selected rows.

    The admin calls it with `keys` and `back`, to ask; its form comes to the noun's own address.
    """

    @page(noun.section or noun.plural, permission=noun.view, methods=("GET", "POST"))
    def view(visit: Visit, name: str, *, keys: Sequence[Any] = (), back: str = "") -> HttpResponse:
        action = noun.action(name)
        if action is None or not action.is_for_many:
            raise not_found()
        is_sent = visit.request.method == "POST" and not keys
        form = form_of(action.body, without=action.choices)(visit.request.POST if is_sent else None)
        chosen = list(map(str, keys)) or [*filter(None, form.data.get("keys", "").split(","))]
        back = back or _back(visit, None, noun)
        if len(chosen) > SELECTED:
            text = gettext("Select at most %s rows at once.") % number(SELECTED)
            return failed(visit, text, to=back)
        rows = _that_it_moves(visit, noun, action, chosen)
        if not rows:
            return failed(visit, gettext("It applies to none of the selected rows."), to=back)
        if is_sent and form.is_valid():
            seen = dict(zip(chosen, form.cleaned_data["seen"].split(","), strict=False))
            rows = _performed_on_all(visit, noun, action, rows, form=form, seen=seen)
            if not rows:
                return HttpResponseRedirect(back)
        form.initial |= {"back": back}
        if form.is_bound:
            form.data = form.data.dict()
        asked = form.data if form.is_bound else form.initial
        asked["keys"] = ",".join(_key(noun, row) for row in rows)
        asked["seen"] = ",".join(map(noun.seen, rows)) if noun.seen else ""
        title = gettext("%s selected") % number(len(rows))
        to = reverse(f"jobs:{noun.name}_actions", args=[name])
        return _shown(visit, action, form, title=title, rows=_titles(noun, rows), back=back, to=to)

    return view


def buttons(visit: Visit, noun: Noun, row: Any) -> list[tuple[str, str]]:
    """Return the label and the address of each action that the visitor can perform on a row."""
    return [
        (gettext(action.label), address_of(noun, action, row))
        for action in available(noun, row, by=visit.access)
    ]


def address_of(noun: Noun, action: Action, row: Any) -> str:
    """Return the address of the page that asks before an action on a row."""
    return reverse(f"jobs:{noun.name}_action", args=[getattr(row, noun.key), action.name])


def secret_page(
    visit: Visit, secret: str, *, label: str, text: str, row: Any, back: str
) -> HttpResponse:
    """Show a new secret, with a link back to its row: no other page ever does."""
    facts = {"label": gettext(label), "text": in_language(text), "row": row, "back": back}
    response = visit.show("jobs/pages/secret.html", secret=secret, **facts)
    response["Cache-Control"] = "no-store"
    return response


def _asked(visit: Visit, noun: Noun, action: Action, row: Any) -> HttpResponse:
    back = _back(visit, None if action.is_deletion else row, noun)
    with barrier.lifted():
        is_offered = action.is_offered_for(row, noun.rows())
    if not is_offered:
        return failed(visit, gettext(action.refused) % {"row": row}, to=back)
    with barrier.lifted():
        initial = dict(action.initial(row, visit.access)) if action.initial else {}
        initial |= {"seen": noun.seen(row)} if noun.seen else {}
        choices = {name: offered(row) for name, offered in action.choices.items()}
    form = form_of(action.body, choices)(visit.request.POST or None, initial=initial)
    is_sent = visit.request.method == "POST" and form.is_valid()
    if is_sent and _is_counted(visit, noun, action, row, form):
        try:
            made = _performed(visit, noun, action, row, form=form, seen=form.cleaned_data["seen"])
            if action.secret is not None:
                secret = action.secret(made.value)
                words = {"label": action.label, "text": made.text}
                return secret_page(visit, secret, **words, row=row, back=back)
            return done(visit, _told(visit, made), to=back)
        except FairshiftError as error:
            field, problem = problem_of(error)
            if field not in form.fields:
                return failed(visit, in_language(problem), to=back)
            form.refuse(field, problem)
    with barrier.lifted():
        count = action.counts(row) if action.counts else 0
    [title] = _titles(noun, [row])
    return _shown(visit, action, form, title=title, rows=[], count=count, back=back)


def _that_it_moves(visit: Visit, noun: Noun, action: Action, keys: Sequence[str]) -> list[Any]:
    """Return the rows with these keys on which the visitor may perform the action now."""
    access = visit.access
    if not access.permits(action.permission):
        return []
    with barrier.lifted():
        rows = (action.offered or action.applies)(noun.rows())
        if noun.owner is not None:
            rows = access.narrowed(rows, path=noun.owner, scope=action.scope)
        elif not access.has(action.scope):
            return []
        try:
            return list(rows.filter(**{f"{noun.key}__in": keys}).order_by("pk"))
        except (ValueError, DataError, ValidationError):
            return []


def _performed_on_all(
    visit: Visit,
    noun: Noun,
    action: Action,
    rows: list[Any],
    *,
    form: BodyForm,
    seen: Mapping[str, str],
) -> list[Any]:
    """Perform an action on one row after the other; return those that the time did not reach.

    A message says how many it was done for, and the first refusal.
    """
    problems: list[str] = []
    until = time.monotonic() + BUDGET_SECONDS
    left = list(rows)
    while left and (len(left) == len(rows) or time.monotonic() < until):
        row = left.pop(0)
        try:
            _performed(visit, noun, action, row, form=form, seen=seen.get(_key(noun, row), ""))
        except FairshiftError as error:
            _field, problem = problem_of(error)
            problems.append(f"{row}: {in_language(problem)}")
    tried = len(rows) - len(left)
    texts = [
        gettext("%(label)s: done for %(count)s of %(all)s.")
        % {
            "label": gettext(action.label),
            "count": number(tried - len(problems)),
            "all": number(len(rows)),
        },
        *problems[:1],
        *([gettext("Time limit reached: confirm the rest to go on.")] if left else []),
    ]
    tell = messages.warning if problems or left else messages.success
    tell(visit.request, " ".join(texts))
    return left


def _shown(visit: Visit, action: Action, form: BodyForm, **facts: Any) -> HttpResponse:
    words: dict[str, Any] = {"label": gettext(action.label), "explains": gettext(action.explains)}
    return visit.show("jobs/pages/action.html", action=action, form=form, **words, **facts)


def _titles(noun: Noun, rows: Sequence[Any]) -> list[Any]:
    return [in_language(noun.title(row)) for row in rows]


def _key(noun: Noun, row: Any) -> str:
    return str(getattr(row, noun.key))


def _performed(
    visit: Visit, noun: Noun, action: Action, row: Any, *, form: BodyForm, seen: str
) -> Done:
    """Perform an action on a row that is as the visitor has seen it."""
    see = noun.seen
    once = form.cleaned_data["once"]
    return perform(
        noun,
        action,
        getattr(row, noun.key),
        form.body,
        by=visit.access,
        once=f"page:{once}:{row.pk}" if once and action.takes_once else None,
        is_version=(lambda found: see(found) == seen) if see else None,
    )


def _is_counted(visit: Visit, noun: Noun, action: Action, row: Any, form: BodyForm) -> bool:
    """Say whether the form before showed how many runs it adds; if not, let this one show it.

    A count that has changed may mean a changed schedule, so it is confirmed anew.
    """
    if not action.is_counted:
        return True
    try:
        body = form.body.model_copy(update={"dry_run": True})
        count = perform(noun, action, getattr(row, noun.key), body, by=visit.access).count or 0
    except FairshiftError as error:
        form.refuse(*problem_of(error))
        return False
    facts = f"{form.body.model_dump_json(exclude={'reason'})} {count}"
    if form.cleaned_data["counted"] == facts:
        return True
    form.data = {**form.data.dict(), "counted": facts}
    text = ngettext("This makes %s run.", "This makes %s runs.", count) % number(count)
    form.announcement = f"{text} {gettext('Confirm it with the same button.')}"
    return False


def _told(visit: Visit, made: Done) -> Any:
    """Return the message of a success, with a link to the run that it has made."""
    text = in_language(made.text)
    run = made.value[0] if isinstance(made.value, tuple) else None
    url = visit.address("run", run.id) if isinstance(run, Run) else None
    return format_html('<a href="{}">{}</a>', url, text) if url else text


def _back(visit: Visit, row: Any, noun: Noun) -> str:
    """Return the page that asked for it, such as one of the admin; else the row's, or the list."""
    asked = visit.request.POST.get("back") or visit.request.GET.get("back", "")
    if url_has_allowed_host_and_scheme(asked, allowed_hosts=None) and asked.startswith("/"):
        return asked
    user = visit.request.user
    if row is None:
        own = visit.address(noun.section or noun.plural)
        in_admin = nav.admin_address(user, f"{noun.model_name}_changelist")
    elif noun.shown_by:
        own = visit.address(noun.shown_by, getattr(row, noun.shown_by).pk)
        in_admin = None
    else:
        own = visit.address(noun.name, getattr(row, noun.key))
        in_admin = nav.admin_address(user, f"{noun.model_name}_change", row.pk)
    return own or in_admin or reverse("jobs:overview")
