"""The schedule of the company: 18 PeriodicTasks of all kinds."""

import json
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
)

NOW = timezone.now()


def entry(name: str, task: str = "invoice", **fields: Any) -> None:
    given = {"invoice": {"customer": 7}, "remind": {"customer": 8}, "report": {"kind": "sales"}}
    kwargs = {**given.get(task, {}), **fields.pop("more", {}), "entry": name}
    PeriodicTask.objects.create(
        name=name, task=f"crm.billing.tasks.{task}", kwargs=json.dumps(kwargs), **fields
    )


def every(seconds: int) -> IntervalSchedule:
    return IntervalSchedule.objects.get_or_create(every=seconds, period="seconds")[0]


def cron(text: str, zone: str = "Europe/Berlin") -> CrontabSchedule:
    names = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    fields = dict(zip(names, text.split(), strict=True))
    return CrontabSchedule.objects.create(timezone=zone, **fields)


entry("each 10 s", interval=every(10))
entry("each 15 s", "remind", interval=every(15), more={"text": "Grüße"})
entry("each 20 s", "report", interval=every(20), more={"kind": "stock"})
entry("each hour", interval=every(3600), last_run_at=NOW)
entry("each minute", crontab=cron("* * * * *"))
entry("each minute in mails", "remind", crontab=cron("*/1 * * * *", "UTC"))
entry("each minute of workdays", crontab=cron("* * * * 0-6", "America/New_York"))
entry("each minute with a priority", crontab=cron("* * * * *"), priority=3)
entry("each minute in its queue", crontab=cron("* * * * *"), queue="reports")
entry("each minute, or not at all", crontab=cron("* * * * *"), expire_seconds=300)
entry("close of the day", "close_day", crontab=cron("* * * * *"))
entry("nightly", "report", crontab=cron("0 3 * * *"), last_run_at=NOW)
entry("monthly", "report", crontab=cron("30 2 1 * *"), last_run_at=NOW)
entry(
    "once",
    clocked=ClockedSchedule.objects.create(clocked_time=NOW + timedelta(seconds=60)),
    one_off=True,
)
entry("switched off", interval=every(10), enabled=False)
entry("over", interval=every(10), expires=NOW - timedelta(days=1))
entry("not yet", interval=every(10), start_time=NOW + timedelta(days=1))
entry("per tenant", crontab=cron("0 4 * * *"), exchange="tenants", last_run_at=NOW)
