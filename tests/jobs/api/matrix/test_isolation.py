"""Every operation of the document, for every kind of caller: no owner learns of another one's rows.

The matrix is made from the OpenAPI document, so that a new operation is in it by itself. `make
test` plays what a new operation would fail first.
"""

from functools import partial

import pytest

from tests.jobs.api.conftest import alike
from tests.jobs.api.matrix.operations import (
    BODIES,
    OF_INSTALLATION,
    OF_USERS,
    OPERATIONS,
    Operation,
    by,
)
from tests.jobs.api.matrix.rows import FILTERS, NAME_NO_ROW, PARAMETERS, of_no_row
from tests.jobs.api.matrix.world import World, only_reads, read, send, unknown_keys
from tests.jobs.pages.matrix.stored import stored

OF_ROWS = [one for one in OPERATIONS if one.owned]
READS = [one for one in OPERATIONS if only_reads(one)]
FILTERED = [one for one in OPERATIONS if set(one.filters) & set(FILTERS)]
NAMING = [one for one in OPERATIONS if one.has_body and one.naming("nobody99")]
OF_ARGUMENTS = {"list_lines_of_run", "watch_lines_of_run", "download_log_of_run"}
"""Operations that show what tasks log, arguments too."""
GUESSED = {"If-None-Match": "*", "If-Match": '"guessed"'}
"""Headers that are compared with the ETag of a row, if there is one."""
UNUSABLE = ("anonymous", "revoked", "expired", "made up")


def test_every_operation_can_be_filled() -> None:
    """Else it would be in no other test: add what is missing to `operations` or `rows`."""
    for operation in OPERATIONS:
        assert set(operation.parameters) <= set(PARAMETERS), operation
        assert operation.has_body == (operation.id in BODIES), operation
        assert set(operation.filters) <= set(FILTERS) | NAME_NO_ROW, operation


@by(OPERATIONS)
def test_own_rows_are_answered(world: World, operation: Operation) -> None:
    """Else the refusals below would prove nothing."""
    caller = "installation" if operation.id in OF_INSTALLATION else "acme"
    answer = send(world.callers[caller], operation, world.keys_of(operation, world.acme))
    if operation.id in OF_USERS:
        assert answer.status_code == 409
    else:
        assert 200 <= answer.status_code < 300, answer.content


@by(OF_ROWS)
def test_foreign_rows_are_answered_as_unknown_ones(
    one_wall: None, world: World, operation: Operation
) -> None:
    """With the same bytes and headers, after as many statements, and without a change.

    Also if only one of the keys is foreign. No ETag is compared with what the caller has guessed.
    """
    client = world.callers["acme"]
    mine, foreign = (world.keys_of(operation, owner) for owner in (world.acme, world.stranger))
    unknown = unknown_keys(operation)
    pairs = [(foreign, unknown)]
    if len(operation.owned) > 1:
        pairs += [
            ({**mine, name: foreign[name]}, {**mine, name: unknown[name]})
            for name in operation.owned
        ]
    for pair in pairs:
        asks = [partial(send, client, operation, keys, **GUESSED) for keys in pair]
        assert alike(*asks) == 404
    assert stored() == world.untouched[None]


@by(OPERATIONS)
def test_no_answer_contains_foreign_rows(
    one_wall: None, world: World, operation: Operation
) -> None:
    """No list, search, export or page; and no bulk without a filter of owners moves any."""
    keys = world.keys_of(operation, world.acme)
    answer = send(world.callers["acme"], operation, keys)
    content = answer.content.decode()
    assert not [word for word in world.secrets if word in content]
    assert stored(world.stranger) == world.untouched[world.stranger]


@pytest.mark.proof
@by(READS)
def test_no_answer_counts_foreign_rows(one_wall: None, world: World, operation: Operation) -> None:
    """Whether the stranger has rows or not, acme gets the same; a dry run counts the same."""
    keys = world.keys_of(operation, world.acme)
    assert read(world.callers["acme"], operation, keys) == world.alone[operation.id]


@by(FILTERED)
def test_no_filter_finds_foreign_rows(one_wall: None, world: World, operation: Operation) -> None:
    """A value that only rows of the stranger have is answered as one that no row has."""
    client, path = world.callers["acme"], world.path_of(operation)
    for name in set(operation.filters) & set(FILTERS):
        value = world.filters[name]
        found, none = (client.get(path, {name: each}) for each in (value, of_no_row(value)))
        assert found.status_code == none.status_code == 200, (name, found.content)
        assert found.content == none.content, name


@by(NAMING)
def test_a_named_stranger_is_unknown(one_wall: None, world: World, operation: Operation) -> None:
    """In a body, too: the same answer as for an owner that does not exist, and no change."""
    keys = world.keys_of(operation, world.acme)
    named, none = (
        send(world.callers["acme"], operation, keys, operation.naming(slug))
        for slug in ("stranger", "nobody99")
    )
    assert named.status_code == none.status_code
    assert named.content.decode().replace("stranger", "nobody99") == none.content.decode()
    assert stored(world.stranger) == world.untouched[world.stranger]


@pytest.mark.proof
@by(OPERATIONS)
def test_a_read_only_caller_changes_nothing(world: World, operation: Operation) -> None:
    """403 for every scope but `read`, whether the row exists or not, and for runs' arguments."""
    client = world.callers["read only"]
    answer = send(client, operation, world.keys_of(operation, world.acme))
    if operation.id in OF_ARGUMENTS:
        assert answer.status_code == 403
    elif operation.scope == "read":
        assert answer.status_code in {200, 204}
    else:
        assert answer.status_code == 403
        assert answer.content == send(client, operation, unknown_keys(operation)).content
    assert stored() == world.untouched[None]


@by(OPERATIONS)
def test_a_caller_without_a_usable_token_is_told_nothing(
    world: World, operation: Operation
) -> None:
    """Anonymous, revoked, expired and made up: 401, with the same bytes; and for unknown rows."""
    mine, unknown = world.keys_of(operation, world.acme), unknown_keys(operation)
    callers = [world.callers[name] for name in UNUSABLE]
    answers = [send(caller, operation, mine) for caller in callers]
    answers.append(send(callers[0], operation, unknown))
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert stored() == world.untouched[None]
