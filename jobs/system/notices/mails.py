"""Mails: subscriptions are created, changed and deleted; a due mail is written and sent.

At most one mail for each subscription, job (or task) and change in MAIL_QUIET_SECONDS: the first
event is mailed at once, those after it are counted, and summed up in the next mail.
"""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet import one_line
from jobs.catalog.retry_policy import RetryPolicy, backoff
from jobs.core import log_events, sql
from jobs.core.conf import setting
from jobs.core.errors import OptionError
from jobs.models import EventType, MailDigest, MailSubscription, Owner
from jobs.models.verbs import Actor
from jobs.runs.reads.choices import word_of
from jobs.system.notices import interests, listening

logger = logging.getLogger(__name__)

ADDRESSES_MOST: Final = 20
SUBSCRIPTIONS_MOST: Final = 100
"""Most subscriptions of an owner, and of the installation."""
FAILURES_MOST: Final = 20
"""Failed attempts after which a mail is dropped."""

_SENT: Final = """
UPDATE jobs_maildigest SET sending = NULL, sending_count = 0, failure_count = 0,
    sent_at = CASE WHEN %(is_sent)s THEN clock_timestamp() ELSE sent_at END,
    next_at = clock_timestamp() + make_interval(secs => %(quiet)s)
WHERE id = %(id)s
"""
_FAILED: Final = """
UPDATE jobs_maildigest SET failure_count = failure_count + 1,
    next_at = clock_timestamp() + make_interval(secs => %(delay)s)
WHERE id = %(id)s
"""


@transaction.atomic
def make_subscription(
    given: Mapping[str, Any], *, owner: Owner | None, actor: Actor = None
) -> MailSubscription:
    """Make a subscription of an owner's events, or of all (None); errors as in `endpoints`."""
    interests.refuse_unseen(actor, owner)
    if MailSubscription.objects.filter(owner=owner).count() >= SUBSCRIPTIONS_MOST:
        raise OptionError("name", f"would be one of more than {SUBSCRIPTIONS_MOST} subscriptions")
    required = {"name": "", "events": [], "addresses": []}
    fields = _checked({**required, **given}, owner=owner, actor=actor)
    mail = MailSubscription.objects.create(owner=owner, **fields, **interests.made_by(actor))
    interests.audit("create", mail, actor, events=mail.events)
    listening.sync_all()
    mail.refresh_from_db()
    return mail


@transaction.atomic
def change_subscription(
    mail: MailSubscription, given: Mapping[str, Any], *, actor: Actor = None, reason: str = ""
) -> list[str]:
    """Change the given fields; return the names of those that differed."""
    fields = _checked(given, owner=mail.owner, actor=actor)
    return interests.change(mail, fields, actor=actor, reason=reason)


@transaction.atomic
def delete_subscription(mail: MailSubscription, *, actor: Actor = None, reason: str = "") -> None:
    """Delete a subscription, with what its next mails would say."""
    interests.audit("delete", mail, actor, reason=reason)
    MailSubscription.objects.filter(pk=mail.pk).delete()
    listening.sync_all()


def _checked(given: Mapping[str, Any], *, owner: Owner | None, actor: Any) -> dict[str, Any]:
    fields = interests.checked(given, owner=owner, actor=actor)
    if "addresses" in given:
        fields["addresses"] = _addresses(given["addresses"])
    if "language" in given:
        known = [code for code, _name in settings.LANGUAGES]
        if given["language"] not in known:
            raise OptionError("language", f"is one of {', '.join(known)}")
        fields["language"] = given["language"]
    return fields


def _addresses(value: Any) -> list[str]:
    given = list(dict.fromkeys(str(one).strip() for one in value))
    if not 1 <= len(given) <= ADDRESSES_MOST:
        raise OptionError("addresses", f"holds 1 to {ADDRESSES_MOST} addresses")
    for one in given:
        try:
            validate_email(one)
        except ValidationError:
            raise OptionError("addresses", f"holds {one[:100]!r}, which is no address") from None
    return given


def send_mail(digest_id: int) -> str:
    """Send one mail that was claimed; return what it came to, in a word."""
    rows = MailDigest.objects.select_related(
        "subscription__owner", "subscription__created_by", "subscription__created_by_token"
    )
    digest = rows.filter(pk=digest_id, sending__isnull=False).first()
    if digest is None or not digest.subscription.is_active:
        return "dropped"
    if why := interests.why_stopped(digest.subscription):
        interests.stop(digest.subscription, why)
        return "stopped"
    quiet = setting("MAIL_QUIET_SECONDS")
    try:
        message_of(digest).send()
    except (OSError, smtplib.SMTPException) as error:
        return _failed(digest, error, quiet)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        # Raw SQL has changed the row. Without its text, which may hold a part of an event.
        return _failed(digest, ValueError(f"it cannot be written ({type(error).__name__})"), quiet)
    sql.query(_SENT, {"id": digest_id, "quiet": quiet, "is_sent": True})
    return "sent"


def _failed(digest: MailDigest, error: Exception, quiet: float) -> str:
    failures = digest.failure_count + 1
    facts = {"subscription": digest.subscription_id, "failures": failures, "error": one_line(error)}
    if failures >= FAILURES_MOST:
        log_events.MAIL_GIVEN_UP.log(logger, **facts)
        sql.query(_SENT, {"id": digest.pk, "quiet": quiet, "is_sent": False})
        return "given up"
    log_events.MAIL_FAILED.log(logger, **facts)
    policy = RetryPolicy(
        max_attempts=FAILURES_MOST,
        backoff_seconds=setting("WEBHOOK_BACKOFF_SECONDS"),
        backoff_cap_seconds=setting("WEBHOOK_BACKOFF_CAP_SECONDS"),
    )
    sql.query(_FAILED, {"id": digest.pk, "delay": backoff(policy, attempt=failures)})
    return "failed"


def message_of(digest: MailDigest) -> EmailMessage:
    """Return the mail, in the language of its subscription."""
    mail = digest.subscription
    with translation.override(mail.language):
        lines, count = digest.sending or [], digest.sending_count
        what = _what(digest)
        subject = what if count == 1 else f"{what} ({count:,} ×)"
        parts = [subject, "", *(_line(data) for data in lines)]
        if count > len(lines):
            earlier = count - len(lines)
            parts.append(
                ngettext(
                    "… and %(count)s earlier event.", "… and %(count)s earlier events.", earlier
                )
                % {"count": f"{earlier:,}"}
            )
        minutes = round(setting("MAIL_QUIET_SECONDS") / 60)
        parts += [
            "",
            _(
                "You get this mail because of the subscription “%(name)s”. "
                "Further events like this are summed up, at most one mail in %(minutes)s minutes."
            )
            % {"name": mail.name, "minutes": minutes},
        ]
    return EmailMessage(
        # One line: a name in it may come from a caller.
        subject=" ".join(f"[Fairshift] {subject}".split())[:200],
        body="\n".join(parts),
        # The addresses do not see each other.
        bcc=mail.addresses,
    )


def _what(digest: MailDigest) -> str:
    """Return the change in words, with the job's key or the task's name."""
    kind, _space, state = digest.change.partition(" ")
    data = (digest.sending or [{}])[-1]
    wave = data.get("wave", 0)
    facts = {
        "wave": wave,
        "next": wave + 1,
        "waves": data.get("waves"),
        "name": data.get("key") or ("waves" in data and data.get("label")) or data.get("task"),
        "owner": data.get("owner"),
        "state": word_of(state),
    }
    texts = {
        EventType.RUN_ENDED: _("%(name)s of %(owner)s: run %(state)s"),
        EventType.SUBMISSION_ENDED: _("%(name)s of %(owner)s: all runs ended"),
        EventType.WAVE_ENDED: _("%(name)s of %(owner)s: wave %(wave)s of %(waves)s ended"),
        EventType.ROLLOUT_STOPPED: _(
            "%(name)s of %(owner)s: stopped, too many runs of wave %(wave)s of %(waves)s failed"
        ),
        EventType.ROLLOUT_WAITS: _(
            "%(name)s of %(owner)s: wave %(next)s of %(waves)s needs an approval"
        ),
        EventType.JOB_FAILING: _("job %(name)s of %(owner)s fails"),
        EventType.JOB_RECOVERED: _("job %(name)s of %(owner)s no longer fails"),
        EventType.JOB_LATE: _("job %(name)s of %(owner)s is late"),
        EventType.JOB_ON_TIME: _("job %(name)s of %(owner)s is no longer late"),
    }
    return texts[EventType(kind)] % facts


def _line(data: Mapping[str, Any]) -> str:
    """Return one event as a line of facts: ids, times, counts."""
    parts = [str(data.get("ended_at") or data.get("since") or data.get("at"))]
    named = ("run", "submission", "job", "wave")
    parts += [f"{name} {data[name]}" for name in named if data.get(name)]
    if "counts" in data:
        parts += [f"{count:,} {word_of(state)}" for state, count in sorted(data["counts"].items())]
    if data.get("error"):
        parts.append(str(data["error"]))
    if data.get("stop_at"):
        parts.append(_("stops above %(limit)s") % {"limit": data["stop_at"]})
    parts += [str(data[name]) for name in ("reason", "url") if data.get(name)]
    return "- " + " · ".join(parts)
