"""python -m tests.parts COMMIT: the proofs that belong to what has changed since a commit.

Prints the paths for pytest: nothing if no proof belongs to the changes.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent
EVERYTHING: Final = ("",)


def _flows(*names: str) -> tuple[str, ...]:
    return tuple(f"flows/test_{name}.py" for name in names)


WORKER: Final = (
    *("fleet/pool", "fleet/worker", "chaos/test_mixed.py"),
    *_flows("busy", "callbacks", "cancel", "draining", "forks"),
    *_flows("idle_workers", "inside", "kills", "looks", "lost_broker", "lost_connections"),
    *_flows("misbehaving", "own_settings", "owners", "pools", "run_logs", "scarce"),
    *_flows("silent_postgres", "unkept", "unknown_tasks", "worker_edges", "worker_stops"),
    *_flows("worker_without_redis"),
)
QUEUE: Final = (
    *("fleet/transport", "contrast", "chaos/test_hostile.py", "chaos/test_mixed.py", "mutations"),
    *_flows("acl", "broker_faults", "drop_in", "epochs", "foreign", "lost_broker"),
    *_flows("lost_connections", "plain_celery", "refused_password", "remote", "wrong_types"),
)
INSTALLING: Final = (
    *("compose", "config", "lived_in"),
    *_flows("demo", "from_celery", "own_project", "own_settings", "wheel"),
)
SITE: Final = (
    *("browser", "chaos/test_web.py"),
    *_flows("canary", "pooled_isolation", "web_faults"),
)
STORAGE: Final = ("chaos/test_proxy.py", *_flows("poolers", "postgres_faults"))
RECURRING: Final = _flows("beats", "clocks", "inbox", "recurring", "schedules")
DOCTOR: Final = ("compose", "jobs/management", *_flows("doctor", "doctor_waits", "faults"))
FLEET_RUN: Final = "flows/test_fleet_run_kills.py"

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "compose": ("compose", "machines"),
    "config": INSTALLING,
    "config/demo": ("config", "flows/test_demo.py", "flows/test_demo_kills.py"),
    "docs/start": INSTALLING,
    "docs": ("docs",),
    "fleet": (*WORKER, *QUEUE),
    "fleet/beat": RECURRING,
    "fleet/fairness": ("fleet/fairness", "mutations", "flows/test_what_if.py"),
    "fleet/flower.py": ("flows/test_flower.py", "browser/test_flower_broker.py"),
    "fleet/pool": WORKER,
    "jobs/management/stack": (*INSTALLING, FLEET_RUN),
    "fleet/templates": ("flows/test_flower.py", "browser/test_flower_broker.py"),
    "fleet/tracing.py": ("flows/test_tracing.py",),
    "fleet/transport": QUEUE,
    "fleet/worker": WORKER,
    "jobs": EVERYTHING,
    "jobs/admin": ("jobs/admin", "browser", "jobs/locale", "own_users"),
    "jobs/api": (*SITE, "jobs/api", "flows/test_command_line.py"),
    "jobs/calendars": ("jobs/calendars", "jobs/windows", "flows/test_windows.py", "mutations"),
    "jobs/catalog": ("jobs/catalog", *WORKER),
    "jobs/checks": (
        *DOCTOR,
        "jobs/checks",
        "flows/test_own_project.py",
        "config/test_debian_servers.py",
    ),
    "jobs/client": ("flows/test_command_line.py", "flows/test_wheel.py"),
    "jobs/definitions": (
        *("jobs/definitions", "flows/test_inbox.py", "flows/test_from_celery.py", "lived_in"),
    ),
    "jobs/forecast": ("jobs/forecast", "flows/test_what_if.py", "benchmarks"),
    "jobs/locale": ("jobs/locale", "browser"),
    "jobs/management": DOCTOR,
    "jobs/management/run.py": (*INSTALLING, FLEET_RUN),
    "jobs/migrations": ("jobs/migrations", "mutations", "flows/test_own_project.py", "lived_in"),
    "jobs/owners": ("jobs/owners", "jobs/api", "flows/test_secrets.py"),
    "jobs/pages": (*SITE, "jobs/pages", "jobs/locale", "flows/test_faults.py"),
    "jobs/recurring": (*RECURRING, "jobs/journeys", "mutations"),
    "jobs/core": (*STORAGE, *SITE, "jobs/core", "mutations"),
    "jobs/rollouts": ("jobs/rollouts", "jobs/journeys", "flows/test_rollouts.py"),
    "jobs/runs": (*WORKER, *STORAGE, "jobs/journeys", "mutations"),
    "jobs/schedules": (*RECURRING, "jobs/schedules"),
    "jobs/static": ("browser",),
    "jobs/system": (
        *("jobs/system", "jobs/journeys", "flows/test_webhooks.py", "flows/test_draining.py"),
        "flows/test_own_settings.py",
        *(*STORAGE, "chaos/test_mixed.py", "chaos/test_retention.py", "mutations"),
    ),
    "jobs/templatetags": ("browser", "jobs/pages"),
    "jobs/system/verdict": (*DOCTOR, "jobs/system/verdict", "jobs/pages", "flows/test_faults.py"),
    "jobs/windows": ("jobs/windows", "jobs/calendars", "flows/test_windows.py", "mutations"),
    "pyproject.toml": INSTALLING,
    "requirements.lock": EVERYTHING,
    "templates": ("browser", "jobs/pages", "jobs/admin", "jobs/locale"),
}
"""Of each folder or file of the project: files and folders of tests. The longest name counts."""


def parts_of(changed: Iterable[str]) -> list[str]:
    """Return the tests of changed files, without those that lie in another one's folder."""
    found = {part for path in changed for part in _parts_of(path)}
    return sorted(
        f"tests/{part}".rstrip("/")
        for part in found
        if not any(str(parent) in found for parent in Path(part).parents)
        and ("" not in found or not part)
    )


def _parts_of(path: str) -> tuple[str, ...]:
    parts = Path(path).parts
    if parts[0] == "tests":
        # A helper is used by what lies beside it and below.
        is_test = parts[-1].startswith("test_") and (TESTS.parent / path).exists()
        return ("/".join(parts[1:] if is_test else parts[1:-1]),)
    names = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((PARTS[name] for name in names if name in PARTS), ())


def main() -> None:
    """Print the paths; `1` stands for the commit at which the branch has left main."""
    given = sys.argv[1]
    base = given if given != "1" else _git("merge-base", "HEAD", _main())[0]
    changed = [
        *_git("diff", "--name-only", base),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]
    print(*parts_of(changed))


def _main() -> str:
    """Return the published main, or ours if there is none."""
    known = _git("for-each-ref", "--format=%(refname:short)", "refs/remotes/origin/main")
    return (known or ["main"])[0]


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
