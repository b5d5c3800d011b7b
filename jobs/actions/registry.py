"""All nouns that have actions."""

from typing import Final

from jobs.actions.backfills import BACKFILLS
from jobs.actions.calendars import CALENDARS
from jobs.actions.jobs import JOBS
from jobs.actions.mail_subscriptions import MAIL_SUBSCRIPTIONS
from jobs.actions.members import MEMBERS
from jobs.actions.owners import OWNERS
from jobs.actions.runs import RUNS
from jobs.actions.submissions import SUBMISSIONS
from jobs.actions.tokens import TOKENS
from jobs.actions.webhooks import WEBHOOKS
from jobs.actions.windows import WINDOWS
from jobs.actions.workers import WORKERS

NOUNS: Final = (
    BACKFILLS,
    CALENDARS,
    JOBS,
    MAIL_SUBSCRIPTIONS,
    MEMBERS,
    OWNERS,
    RUNS,
    SUBMISSIONS,
    TOKENS,
    WEBHOOKS,
    WINDOWS,
    WORKERS,
)
