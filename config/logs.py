"""The format of log lines: readable on a terminal, JSON in production."""

import sys
from typing import Any

import structlog
from structlog.typing import EventDict

from fleet import bound_facts

TEXT_CHARACTERS = 20_000

# They log "received" and "succeeded" for each task; rows and events say the same.
EACH_TASK_LOGGERS = ("celery.worker.strategy", "celery.app.trace")


def _add_bound_facts(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Give a line the run, owner, worker and trace of the process or block that logs it."""
    return {**bound_facts(), **event}


SHARED_PROCESSORS: list[Any] = [
    _add_bound_facts,
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def logging_settings(*, form: str, level: str) -> dict[str, Any]:
    """Configure structlog and return Django's LOGGING; both write the same format."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    # The lines of each task cost more than a short task.
    each_task_level = "WARNING" if level == "INFO" else level
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "fairshift": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [
                    *SHARED_PROCESSORS,
                    *([_name_event] if form == "json" else []),
                ],
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *_renderers(form),
                ],
            },
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "fairshift"},
        },
        "root": {"handlers": ["stderr"], "level": level},
        # Django's own handlers would repeat the line.
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            **{name: {"level": each_task_level} for name in EACH_TASK_LOGGERS},
        },
    }


def _renderers(form: str) -> list[Any]:
    if form == "json":
        last: Any = structlog.processors.JSONRenderer()
    else:
        last = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    # Python's own tracebacks: rich ones take minutes for a message of a megabyte, and show local
    # variables, which may be secrets.
    return [structlog.processors.format_exc_info, _clip, last]


def _name_event(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Give a line of a catalogue its event's name, its facts as fields, and its sentence."""
    record = event["_record"]
    if name := getattr(record, "event", None):
        facts = {key: _plain(value) for key, value in record.facts.items()}
        event.update(facts, event=name, message=event["event"])
    return event


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | None) else str(value)


def _clip(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Shorten long texts, such as those of a task's errors."""
    for key in ("event", "message", "exception"):
        text = event.get(key)
        if isinstance(text, str) and len(text) > TEXT_CHARACTERS:
            half = TEXT_CHARACTERS // 2
            left_out = len(text) - TEXT_CHARACTERS
            event[key] = f"{text[:half]} … {left_out} characters left out … {text[-half:]}"
    return event
