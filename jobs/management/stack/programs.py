"""The programs that make up a stack: workers, beat, Flower and the web server."""

import sys
from collections.abc import Mapping, Sequence

from jobs.management.stack.stack import Program

APPLICATION = "config"


def job_worker(
    name: str,
    *,
    slots: int,
    queue: str = "jobs",
    environment: Mapping[str, str] | None = None,
    app: str = APPLICATION,
) -> Program:
    """Return a worker that runs people's jobs, of queues with commas between, in processes."""
    options = ["--queues", queue, "--pool", "prefork", "--concurrency", str(slots), "--task-events"]
    return _worker(name, options, environment, app)


def system_worker(
    name: str = "system",
    *,
    queue: str = "system",
    environment: Mapping[str, str] | None = None,
    app: str = APPLICATION,
) -> Program:
    """Return the worker of Fairshift's own tasks, which jobs must not delay.

    It has three processes: a project's hooks may occupy one of them for long.
    """
    options = ["--queues", queue, "--pool", "prefork", "--concurrency", "3"]
    return _worker(name, [*options, "--without-gossip", "--without-mingle"], environment, app)


def notices_worker(
    name: str = "notices",
    *,
    slots: int = 8,
    queue: str = "notices",
    environment: Mapping[str, str] | None = None,
    app: str = APPLICATION,
) -> Program:
    """Return the worker that sends webhooks and mails: one process, which waits in threads."""
    options = ["--queues", queue, "--pool", "threads", "--concurrency", str(slots)]
    return _worker(name, [*options, "--without-gossip", "--without-mingle"], environment, app)


def beat(
    name: str = "beat", *, environment: Mapping[str, str] | None = None, app: str = APPLICATION
) -> Program:
    """Return celery-beat; several may run, one sends."""
    return Program(
        name,
        _celery(app, "beat", ["--loglevel", "INFO"]),
        environment=environment or {},
        ready_text="beat: Starting",
    )


def flower(
    *,
    port: int,
    user: str,
    password: str,
    site_url: str = "",
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Program:
    """Return Flower on 127.0.0.1; its login is not in the command line.

    With `site_url`, a task's page links to its run in the admin.
    """
    if not user or not password:
        raise ValueError("Flower needs a user and a password: it never runs without a login.")
    command = [sys.executable, "-m", "fleet.flower", "--app", APPLICATION]
    ours = {"FLOWER_BASIC_AUTH": f"{user}:{password}"}
    if site_url:
        ours["FAIRSHIFT_SITE_URL"] = site_url
    return Program(
        "flower",
        [*command, "--address=127.0.0.1", f"--port={port}", *options],
        environment={**(environment or {}), **ours},
        ready_port=port,
    )


def web(
    *, port: int, processes: int = 2, threads: int = 4, environment: Mapping[str, str] | None = None
) -> Program:
    """Return gunicorn with the web application on 127.0.0.1."""
    options = [f"--bind=127.0.0.1:{port}", "--worker-class=gthread", f"--workers={processes}"]
    options += [f"--threads={threads}", "--graceful-timeout=5", "--no-control-socket"]
    return Program(
        "web",
        [sys.executable, "-m", "gunicorn", f"{APPLICATION}.wsgi", *options],
        environment=environment or {},
        ready_port=port,
        ready_text="Listening at",  # the port may be that of another process
    )


def _worker(
    name: str, options: list[str], environment: Mapping[str, str] | None, app: str
) -> Program:
    return Program(
        name,
        _celery(app, "worker", ["--hostname", f"{name}@%h", "--loglevel", "INFO", *options]),
        environment=environment or {},
        ready_text=" ready.",
    )


def _celery(app: str, command: str, options: Sequence[str]) -> list[str]:
    # Celery would run Django's system checks and drop what they say. They import every URL, so the
    # whole web application: more than half of a boot.
    return [sys.executable, "-m", "celery", "--app", app, "--skip-checks", command, *options]
