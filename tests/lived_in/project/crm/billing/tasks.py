"""What the company does; each call leaves a line in a file."""

import json
import os
import time
from typing import Any

from celery import chain, chord, shared_task


def note(task: Any, entry: str, **facts: Any) -> None:
    """Write who called with what and when, and the queue that the call came by."""
    queue = task.request.delivery_info["routing_key"]
    facts |= {"entry": entry, "task": task.name, "queue": queue, "at": time.time()}
    line = json.dumps(facts)
    with open(os.environ["CRM_RECORD"], "a") as record:
        record.write(f"{line}\n")


@shared_task(bind=True)
def invoice(self: Any, customer: int, entry: str) -> int:
    """Return the number of the invoice."""
    note(self, entry, customer=customer)
    return customer * 100


@shared_task(bind=True)
def remind(self: Any, customer: int, entry: str, text: str = "please pay") -> None:
    """Send a reminder, by the queue of mails."""
    note(self, entry, customer=customer, text=text)


@shared_task(bind=True)
def report(self: Any, kind: str, entry: str) -> str:
    """Write a report, by the queue of reports."""
    note(self, entry, kind=kind)
    return kind.upper()


@shared_task
def double(number: int) -> int:
    """Return twice a number."""
    return 2 * number


@shared_task(bind=True)
def total(self: Any, numbers: list[int], entry: str) -> int:
    """Note and return the sum."""
    note(self, f"{entry}: total", sum=sum(numbers))
    return sum(numbers)


@shared_task(bind=True)
def close_day(self: Any, entry: str) -> None:
    """Start a chord and a chain, whose ends are noted."""
    note(self, entry)
    chord([double.s(number) for number in range(4)])(total.s(entry=entry))
    chain(double.s(1), double.s(), invoice.s(entry=f"{entry}: chain")).delay()
