"""A task that logs a line; with SPANS set, its process writes its spans into that file."""

import logging
import os
from typing import Any

from celery import shared_task
from celery.signals import worker_process_init

from jobs import submit
from tests.tasks import logged

logger = logging.getLogger(__name__)


@shared_task(name="flows.say")
def say(text: str, again: bool = False) -> None:
    """Log a line; with `again`, submit another run that does."""
    with logged():
        logger.warning("said %s", text)
        if again:
            submit(say, text="again", owner="acme")


@worker_process_init.connect
def _trace(**_signal: Any) -> None:
    if spans := os.environ.get("SPANS"):
        from opentelemetry.instrumentation.celery import CeleryInstrumentor
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

        provider = TracerProvider()
        out = open(spans, "a", buffering=1)  # noqa: SIM115  it lives as long as the process
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
        CeleryInstrumentor().instrument(tracer_provider=provider)
