"""Actions on pages: a view asks before an action on a row or on many, and performs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, ngettext

from jobs.actions import (
    Action,
    Done,
    Noun,
    available,
    find,
    find_all,
    may_somewhere,
    perform,
    perform_on_all,
    problem_of,
    refuse_unless,
)
from jobs.core import barrier
from jobs.core.errors import FairshiftError
from jobs.core.language import in_language, number
from jobs.models import Owner, Run
from jobs.models.access import Access
from jobs.pages.kit.acts import done, failed
from jobs.pages.kit.body_form import BodyForm, form_of
from jobs.pages.kit.errors import not_found
from jobs.pages.kit.rows import address_of as address_of_page
from jobs.pages.kit.visit import Visit, page
from jobs.runs.bulk import MOST, Moved, OwnedKey

View = Callable[..., HttpResponse]
SAMPLE: Final = 10
"""Rows and owners that a page names before an action on many rows."""


def action_view(noun: Noun) -> View:
    """Return the view of all actions of a noun; its address ends with the action's name."""

    @page(noun.section or noun.plural, permission=noun.view, methods=("GET", "POST"))
    def view(visit: Visit, key: Any, name: str) -> HttpResponse:
        action = noun.action(name)
        if action is None:
            raise not_found()
        row = find(noun, key, by=visit.access)
        refuse_unless(noun, action, row, by=visit.access)
        return _asked(visit, noun, action, row)

    return view


def ask_all(
    visit: Visit,
    noun: Noun,
    action: Action,
    rows: QuerySet[Any],
    *,
    back: str,
    hidden: Sequence[tuple[str, str]] = (),
) -> HttpResponse:
    """Ask before an action on all of these rows; perform it on those that the page has counted.

    The form comes to the address that has shown it, with `hidden` as further fields. What came
    after the count is not moved. At the time limit the form is shown again for the rest.
    """
    sent = visit.request.POST if "counted" in visit.request.POST else None
    form = form_of(action.many, without=action.choices)(sent)
    until, _space, after = form.data.get("counted", "").partition(" ")
    found = find_all(noun, action, _between(rows, after, until), by=visit.access)
    if not found:
        return failed(visit, gettext("It applies to none of the selected rows."), to=back)
    if form.is_bound and form.is_valid():
        moved = _performed_on_all(visit, noun, action, found, form)
        if moved is not None and not moved.left:
            return HttpResponseRedirect(back)
        if moved is not None:
            reached = len(found) - moved.left
            after, found = str(found[reached - 1].pk), found[reached:]
    counted = f"{until or found[-1].pk} {after}".strip()
    if form.is_bound:
        form.data = {**form.data.dict(), "counted": counted}
    else:
        form.initial |= {"back": back, "counted": counted, "seen": _seen_of(noun, found)}
    if len(found) == MOST:
        form.announcement = gettext("There may be more: this is done for the first ones.")
    names = noun.rows().model._meta
    word = names.verbose_name if len(found) == 1 else names.verbose_name_plural
    return _shown(
        visit,
        action,
        form,
        title=f"{number(len(found))} {word}",
        rows=_first(noun, found),
        owners=_by_owner(noun, found),
        back=back,
        hidden=hidden,
    )


def offered_for_many(noun: Noun, *, by: Access) -> list[Action]:
    """Return the actions that a caller can perform on many rows of a noun."""
    return [one for one in noun.actions if one.is_for_many and may_somewhere(one, by=by)]


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
    back = back_of(visit, None if action.is_deletion else row, noun)
    if action not in available(noun, row, by=visit.access):
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
                if secret.startswith("/"):
                    secret = visit.request.build_absolute_uri(secret)
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


def _between(rows: QuerySet[Any], after: str, until: str) -> QuerySet[Any]:
    """Narrow rows to those that a page has counted and not yet moved; none if the keys are none."""
    try:
        for name, text in (("pk__gt", after), ("pk__lte", until)):
            if text:
                rows = rows.filter(**{name: rows.model._meta.pk.to_python(text)})
    except ValidationError:
        return rows.none()
    return rows


def _performed_on_all(
    visit: Visit, noun: Noun, action: Action, found: Sequence[OwnedKey], form: BodyForm
) -> Moved | None:
    """Perform an action on rows, and say how many it was done for; None: the form is refused."""
    once = f"page:{form.cleaned_data['once']}"
    is_version = _is_as_seen(noun, form) if noun.seen else None
    try:
        moved = perform_on_all(
            noun, action, found, form.body, by=visit.access, once=once, is_version=is_version
        )
    except FairshiftError as error:
        form.refuse(*problem_of(error))
        return None
    facts = {
        "label": gettext(action.label),
        "count": number(moved.moved),
        "all": number(len(found)),
    }
    texts = [gettext("%(label)s: done for %(count)s of %(all)s.") % facts, moved.refusal]
    if moved.left:
        texts.append(gettext("Time limit reached: confirm the rest to go on."))
    is_whole = moved.moved == len(found)
    tell = messages.success if is_whole else messages.warning
    tell(visit.request, " ".join(filter(None, texts)))
    return moved


def _seen_of(noun: Noun, found: Sequence[OwnedKey]) -> str:
    """Return what a page shows of rows, each with its key: an action needs them unchanged."""
    see = noun.seen
    if see is None:
        return ""
    with barrier.lifted():
        rows = noun.rows().filter(pk__in=[one.pk for one in found])
        return ",".join(f"{row.pk}:{see(row)}" for row in rows)


def _is_as_seen(noun: Noun, form: BodyForm) -> Callable[[Any], bool]:
    seen = set(form.cleaned_data["seen"].split(","))
    return lambda row: noun.seen is None or f"{row.pk}:{noun.seen(row)}" in seen


def _first(noun: Noun, found: Sequence[OwnedKey]) -> list[Any]:
    """Return the first rows in words."""
    with barrier.lifted():
        rows = noun.rows().filter(pk__in=[one.pk for one in found[:SAMPLE]]).order_by("pk")
        return _titles(noun, rows)


def _by_owner(noun: Noun, found: Sequence[OwnedKey]) -> list[tuple[str, int]]:
    """Return the owners with most of these rows, and their counts."""
    if noun.owner in (None, "pk"):
        return []
    counts = Counter(one.owner_id for one in found).most_common(SAMPLE)
    slugs = dict(Owner.objects.filter(pk__in=dict(counts)).values_list("pk", "slug"))
    return [(slugs[key], count) for key, count in counts if key in slugs]


def _shown(visit: Visit, action: Action, form: BodyForm, **facts: Any) -> HttpResponse:
    words: dict[str, Any] = {"label": gettext(action.label), "explains": gettext(action.explains)}
    return visit.show("jobs/pages/action.html", action=action, form=form, **words, **facts)


def _titles(noun: Noun, rows: Iterable[Any]) -> list[Any]:
    return [in_language(noun.title(row)) for row in rows]


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


def back_of(
    visit: Visit, row: Any, noun: Noun, *, otherwise: str = "", is_asked: bool = True
) -> str:
    """Return the page that asked for it, such as one of the admin; else the row's, or the list."""
    asked = visit.request.POST.get("back") or visit.request.GET.get("back", "")
    if (
        is_asked
        and url_has_allowed_host_and_scheme(asked, allowed_hosts=None)
        and asked.startswith("/")
    ):
        return asked
    if row is None:
        own = otherwise or visit.address(noun.section or noun.plural)
        in_admin = visit.admin_address(f"{noun.model_name}_changelist")
    elif noun.shown_by:
        own = address_of_page(getattr(row, noun.shown_by))
        in_admin = None
    else:
        own = visit.address(noun.name, getattr(row, noun.key))
        in_admin = visit.admin_address(f"{noun.model_name}_change", row.pk)
    return own or in_admin or reverse("jobs:overview")
