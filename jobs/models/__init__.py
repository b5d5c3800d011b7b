"""The models, one file for each idea.

`access` decides who may see and do what; `verbs` connects methods such as `run.cancel()` with
functions of higher packages such as `jobs/runs`.
"""

from jobs.models.audit import AuditEntry as AuditEntry
from jobs.models.calendar import Attachment as Attachment
from jobs.models.calendar import Calendar as Calendar
from jobs.models.calendar import EndBehaviour as EndBehaviour
from jobs.models.calendar import Opening as Opening
from jobs.models.end import End as End
from jobs.models.end import EndListener as EndListener
from jobs.models.end import EndMark as EndMark
from jobs.models.end import HookCall as HookCall
from jobs.models.history import HistoryPart as HistoryPart
from jobs.models.history import HistoryRound as HistoryRound
from jobs.models.inbox import InboxMark as InboxMark
from jobs.models.inbox import JobImport as JobImport
from jobs.models.job import HistoryPolicy as HistoryPolicy
from jobs.models.job import Job as Job
from jobs.models.job import MisfirePolicy as MisfirePolicy
from jobs.models.job import OverlapPolicy as OverlapPolicy
from jobs.models.job import ScheduleKind as ScheduleKind
from jobs.models.metric import MetricOwner as MetricOwner
from jobs.models.metric import MetricTotal as MetricTotal
from jobs.models.notice import EventType as EventType
from jobs.models.notice import JobAlarm as JobAlarm
from jobs.models.notice import MailDigest as MailDigest
from jobs.models.notice import MailSubscription as MailSubscription
from jobs.models.outbox import Outbox as Outbox
from jobs.models.owner import Membership as Membership
from jobs.models.owner import Owner as Owner
from jobs.models.owner import Role as Role
from jobs.models.recurring import Backfill as Backfill
from jobs.models.recurring import BackfillState as BackfillState
from jobs.models.recurring import Cursor as Cursor
from jobs.models.recurring import Leader as Leader
from jobs.models.recurring import Missed as Missed
from jobs.models.recurring import MissReason as MissReason
from jobs.models.recurring import SentEntry as SentEntry
from jobs.models.recurring import Tick as Tick
from jobs.models.rollup import Rollup as Rollup
from jobs.models.rollup import RollupPosition as RollupPosition
from jobs.models.rollup import RollupTotal as RollupTotal
from jobs.models.run import Attempt as Attempt
from jobs.models.run import AttemptOutcome as AttemptOutcome
from jobs.models.run import Run as Run
from jobs.models.run import WindowPolicy as WindowPolicy
from jobs.models.saved_view import SavedView as SavedView
from jobs.models.submission import IdempotencyKey as IdempotencyKey
from jobs.models.submission import Progress as Progress
from jobs.models.submission import Rollout as Rollout
from jobs.models.submission import RolloutState as RolloutState
from jobs.models.submission import Submission as Submission
from jobs.models.target import Target as Target
from jobs.models.target import TargetGroup as TargetGroup
from jobs.models.task_progress import TaskProgress as TaskProgress
from jobs.models.token import ApiToken as ApiToken
from jobs.models.token import Scope as Scope
from jobs.models.webhook import DeliveryState as DeliveryState
from jobs.models.webhook import WebhookDelivery as WebhookDelivery
from jobs.models.webhook import WebhookEndpoint as WebhookEndpoint
from jobs.models.window import Decision as Decision
from jobs.models.window import Window as Window
from jobs.models.window import WindowDecision as WindowDecision
from jobs.models.window import WindowEffect as WindowEffect
from jobs.models.worker import Worker as Worker
