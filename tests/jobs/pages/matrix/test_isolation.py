"""Every page, for every kind of visitor: no owner learns of another one's rows.

The matrix is made from `jobs/urls.py`, so that a new page is in it by itself. `make test` plays
what a new page would fail first: the whole matrix takes an eighth of its time.
"""

import re
from functools import partial
from hashlib import sha256
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.urls import reverse

from jobs.pages.kit.lists import FilterForm
from tests.jobs.api.conftest import alike
from tests.jobs.api.matrix.rows import NOBODY, of_no_row
from tests.jobs.pages.matrix.asking import (
    ASKED,
    WITH_TEXT,
    ask,
    ask_at,
    filled_in,
    forget_messages,
    send,
    shown,
    text_of,
    without_switch,
)
from tests.jobs.pages.matrix.places import (
    FILTERS,
    FORMS,
    LISTS,
    NAME_NO_ROW,
    OF_INSTALLATION,
    OF_ROWS,
    OF_VISITOR,
    PLACES,
    REASON,
    SHOW_NO_TEXT,
    WITH_FORMS,
    WITHOUT_LOGIN,
    WORD,
    Place,
    by,
    unknown_keys,
    value_of,
)
from tests.jobs.pages.matrix.stored import (
    UNCHANGEABLE,
    owned,
    rows_in,
    stored,
    texts_of,
    without_rows,
)
from tests.jobs.pages.matrix.world import World, make_ready

FOUND_FILTERS: dict[str, set[str]] = {}
"""By page, the names of its filters."""
LAST_OF_ALL = {"newest": UUID(int=2**128 - 1), "until": UUID(int=2**128 - 1)}
"""The last run that a form of many runs has counted: all are older."""


@by(PLACES)
def test_every_page_can_be_filled(world: World, place: Place) -> None:
    """Else it would be in no other test: add what is missing to `places`."""
    allowed = world.visitors["root"].options(place.address(world.keys_of(world.acme)))["Allow"]
    assert ("POST" in allowed) == place.has_form, "FORMS has the pages with a form"
    unknown = filters_of(world, place) - set(FILTERS) - NAME_NO_ROW
    assert not unknown, f"add the filters {unknown} to FILTERS or NAME_NO_ROW"


def filters_of(world: World, place: Place) -> set[str]:
    """Return the names of a page's filters, which it has been asked for once."""
    if place.id not in FOUND_FILTERS:
        answer = ask(world.visitors["root"], place, world.keys_of(world.acme), "get")
        form = (answer.context or {}).get("form")
        searched = {"q"} if place.id == "search" else set()
        names = set(form.fields) if isinstance(form, FilterForm) else searched
        FOUND_FILTERS[place.id] = names
    return FOUND_FILTERS[place.id]


def test_every_text_of_the_stranger_has_the_word(world: World) -> None:
    """The word for which the tests look is in each free text of each of its rows."""
    for model in owned():
        assert rows_in(model, world.stranger).exists(), f"make a row of {model.__name__}"
        names = {name for name, text in texts_of(model, world.stranger) if WORD not in text}
        assert not names or model in UNCHANGEABLE, (model, names)


@by(PLACES)
def test_own_rows_are_shown(world: World, place: Place) -> None:
    """Else the refusals below would prove nothing. A HEAD has the same status and no content."""
    make_ready(world, place)
    client = world.doer_of(place)
    whole, head, live = (ask(client, place, world.keys_of(world.acme), how) for how in ASKED)
    assert [one.status_code for one in (whole, head, live)] == [200, 200, 200]
    assert whole.content and not head.content


@pytest.mark.proof
@by(WITH_FORMS)
def test_own_forms_act(world: World, place: Place) -> None:
    """As do those of the stranger for a superuser."""
    make_ready(world, place)
    pairs = [(world.doer_of(place), world.acme), (world.visitors["root"], world.stranger)]
    if place.id in OF_INSTALLATION and not place.is_of_row:
        del pairs[1:]  # both would act on the same row
    if place.id in OF_VISITOR:
        del pairs[1:]  # not for a superuser, either
    if place.verb == "move" or place.id == "run_action change":
        del pairs[1:]  # the arguments of the stranger's runs fit no task
    for client, owner in pairs:
        changed = owner if place.id not in OF_INSTALLATION | OF_VISITOR else None
        before, keys = stored(changed), world.keys_of(owner)
        answer = send(client, place, keys, filled_in(client, place, keys))
        assert answer.status_code in {200, 302} and stored(changed) != before


@by([one for one in LISTS if one.id not in SHOW_NO_TEXT])
def test_a_superuser_sees_the_rows_of_all(world: World, place: Place) -> None:
    """Else the absence of the word would prove nothing."""
    answer = ask(world.visitors["root"], place, world.keys_of(world.acme), "get")
    assert WORD in without_switch(text_of(answer))


@by(OF_ROWS)
def test_foreign_rows_are_answered_as_unknown_ones(
    one_wall: str, world: World, place: Place
) -> None:
    """With the same bytes and headers, after as many statements, and without a change."""
    make_ready(world, place)
    client = world.visitors["member"]
    foreign, unknown = world.keys_of(world.stranger), unknown_keys()
    data = filled_in(world.visitors["root"], place, foreign) if place.has_form else None
    before = stored()
    for how in ASKED:
        assert (
            alike(*(partial(ask, client, place, keys, how) for keys in (foreign, unknown))) == 404
        )
    sent = [partial(send, client, place, keys, data or {}) for keys in (foreign, unknown)]
    assert alike(*sent) == (405 if data is None else 404)
    assert stored() == before


@by(PLACES)
def test_no_answer_contains_foreign_rows(one_wall: str, world: World, place: Place) -> None:
    """No list, search or live part; and no form moves any, not even that of all rows."""
    make_ready(world, place)
    client, keys = world.visitors["member"], world.keys_of(world.acme)
    before = stored(world.stranger)
    answers = [ask(client, place, keys, how) for how in WITH_TEXT]
    if place.has_form and place.id not in OF_INSTALLATION:
        data = filled_in(client, place, keys)
        sent = send(client, place, keys, {**data, **LAST_OF_ALL})
        answers.append(sent)
        # The admin has no barrier: decision 0028.
        if sent.status_code == 302 and not (one_wall == "barrier" and "/admin/" in sent.url):
            answers.append(ask_at(client, sent.url, "get"))
    for answer in answers:
        assert WORD not in text_of(answer)
    assert stored(world.stranger) == before


@pytest.mark.proof
@by(PLACES)
def test_no_answer_depends_on_foreign_rows(one_wall: str, world: World, place: Place) -> None:
    """Whether the stranger has rows or not: no count, no next page and no ETag is another one."""
    client, keys = world.visitors["member"], world.keys_of(world.acme)

    def alone(how: str) -> list[str]:
        with without_rows(world.stranger):
            found = shown(ask(client, place, keys, how))
        forget_messages(client)
        return found.splitlines()

    for how in WITH_TEXT:
        before = alone(how)
        answer = ask(client, place, keys, how)
        forget_messages(client)
        lines = shown(answer).splitlines()
        # A page may change by itself: it says what waits for longer than a minute.
        assert lines == before or lines == alone(how)
        if "ETag" in answer.headers:
            # It tells no more than the bytes that it is made of.
            assert answer["ETag"] == f'"{sha256(answer.content).hexdigest()[:32]}"'


@by(LISTS)
def test_no_filter_finds_foreign_rows(one_wall: str, world: World, place: Place) -> None:
    """A value that only rows of the stranger have is answered as one that no row has."""
    client, keys = world.visitors["member"], world.keys_of(world.acme)
    for name in filters_of(world, place) & set(FILTERS):
        value = value_of(name, world.stranger)
        for how in WITH_TEXT:
            found, none = (
                without(shown(ask(client, place, keys, how, **{name: each})), each)
                for each in (value, of_no_row(value))
            )
            assert found == none, (name, how)


@pytest.mark.proof
@by(PLACES)
def test_another_owner_cannot_be_chosen(one_wall: str, world: World, place: Place) -> None:
    """It is as unknown as one that does not exist."""
    client, keys = world.visitors["member"], world.keys_of(world.acme)
    for how in ASKED:
        asks = [partial(ask, client, place, keys, how, owner=slug) for slug in (WORD, NOBODY)]
        assert alike(*asks, headers=False) == 404, how


@pytest.mark.proof
@pytest.mark.parametrize("visitor", ["both", "root"])
@by(LISTS)
def test_only_rows_of_the_chosen_owner_are_shown(world: World, place: Place, visitor: str) -> None:
    """To a member of two owners, and to a superuser."""
    client, keys = world.visitors[visitor], world.keys_of(world.acme)
    for how in WITH_TEXT:
        text = without_switch(text_of(ask(client, place, keys, how, owner="acme")))
        assert WORD not in text and "northwind" not in text


@pytest.mark.proof
@by([one for one in PLACES if one.id not in OF_VISITOR])
def test_a_viewer_reads_and_changes_nothing(world: World, place: Place) -> None:
    """A form is answered 403, as one of another row is 404."""
    make_ready(world, place)
    client, keys = world.visitors["read only"], world.keys_of(world.acme)
    before = stored()
    answers = [ask(client, place, keys, how) for how in ASKED]
    is_refused = place.has_form or place.id in OF_INSTALLATION
    assert {answer.status_code for answer in answers} == {403 if is_refused else 200}
    if place.has_form:
        data = filled_in(world.doer_of(place), place, keys)
        assert send(client, place, keys, data).status_code == 403
    assert stored() == before


@pytest.mark.parametrize("visitor", ["both", "read only", "root"])
@by([one for one in PLACES if one.id in OF_VISITOR])
def test_saved_views_are_their_users_only(world: World, place: Place, visitor: str) -> None:
    """Not a superuser's, either. A viewer has some of its own."""
    client, keys = world.visitors[visitor], world.keys_of(world.acme)
    before = stored()
    answers = [ask(client, place, keys, how) for how in ASKED]
    assert {answer.status_code for answer in answers} == {404 if place.is_of_row else 200}
    for answer in answers:
        assert "view of acme" not in text_of(answer)
    if place.is_of_row:
        assert send(client, place, keys, FORMS[place.id]).status_code == 404
        assert stored() == before


@pytest.mark.proof
@by(PLACES)
def test_a_member_without_permissions_is_told_nothing(world: World, place: Place) -> None:
    """403 with the same bytes for own, foreign and unknown rows, after as many statements."""
    make_ready(world, place)
    client = world.visitors["no permission"]
    all_keys = (world.keys_of(world.acme), world.keys_of(world.stranger), unknown_keys())
    before = stored()
    for how in ASKED:
        assert alike(*(partial(ask, client, place, keys, how) for keys in all_keys)) == 403
    if place.has_form:
        assert alike(*(partial(send, client, place, keys, REASON) for keys in all_keys)) == 403
    assert stored() == before


@by(PLACES)
def test_without_a_login_a_visitor_is_sent_to_it(world: World, place: Place) -> None:
    """With no content, for any row, and a form changes nothing."""
    make_ready(world, place)
    client, before = world.visitors["anonymous"], stored()
    for keys in (world.keys_of(world.acme), unknown_keys()):
        for answer in (ask(client, place, keys, "get"), send(client, place, keys, REASON)):
            assert answer.status_code == 302 and not answer.content
            query = urlencode({"next": place.address(keys)}, safe="/")
            assert answer.url == f"{reverse('jobs:login')}?{query}"
    assert stored() == before


@pytest.mark.parametrize("name", sorted(WITHOUT_LOGIN - {"calendar_feed"}))
def test_pages_without_a_login_show_no_rows(world: World, name: str) -> None:
    client = world.visitors["anonymous"]
    for answer in (client.get(reverse(f"jobs:{name}")), client.post(reverse(f"jobs:{name}"))):
        assert not [slug for slug in (WORD, "acme") if slug in text_of(answer)]


def without(text: str, value: str) -> str:
    """Return a page without the value of a filter, which it shows in its form and its links."""
    if value.isdigit():
        # A page has other numbers, such as the length of a field.
        return re.sub(rf'(submission=|value="){value}\b', r"\1", text)
    return text.replace(urlencode({"": value})[1:], "").replace(value, "")
