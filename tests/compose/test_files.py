"""compose/ as files: Compose accepts them, and they state what the rest of the project does."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from config.settings import env
from jobs.management.stack import programs
from tests.commands import PROJECT, ran
from tests.compose.dockerfile import instructions
from tests.compose.resolved import asked

COMPOSE_FILES: Final = ("compose.yaml", "compose.tls.yaml")
FOLDER: Final = PROJECT / "compose"

STATED: Final = frozenset({"DATABASE_URL", "REDIS_URL", "FAIRSHIFT_ALIVE_FILE"})
"""Variables that compose.yaml sets by itself; the Dockerfile sets FAIRSHIFT_STATE_DIR."""
LEFT_OUT: Final = frozenset(
    {
        *("DEBUG", "FAIRSHIFT_DEMO_DEVICES_URL", "FAIRSHIFT_STATE_DIR"),
        *("REDIS_MASTER_NAME", "REDIS_SENTINEL_PASSWORD"),  # compose.yaml has one Redis
        "DATABASE_TRANSACTION_POOLER",  # and no pooler
    }
)
"""Variables that an installation does not need."""
MAIL_LOGIN: Final = frozenset({"EMAIL_HOST_PASSWORD", "EMAIL_HOST_USER"})
OURS: Final = ("web", "fairshift", "worker", "system", "notices", "beat", "flower", "migrate")
SENDERS: Final = {"fairshift", "notices"}
"""Services that send mails."""
SECRETS: Final = re.compile("SECRET|PASSWORD|AUTH|_URL$")


def variables(text: str) -> set[str]:
    """Return the names of the variables that a file of Compose reads from .env."""
    read = re.findall(r"(?<!\$)\$\{([A-Z_]+)", text)
    passed_on = re.findall(r"^ +([A-Z_]+):$", text, re.MULTILINE)
    return {*read, *passed_on}


def test_env_example_has_every_variable() -> None:
    """Each that a file reads is there, as a line or as a comment, and no other."""
    read = set().union(*(variables((FOLDER / name).read_text()) for name in COMPOSE_FILES))
    listed = re.findall(r"^(?:# )?([A-Z_]+)=", (FOLDER / ".env.example").read_text(), re.MULTILINE)
    # Compose itself reads the profile.
    assert sorted(listed) == sorted({*read, "COMPOSE_PROFILES"})


@pytest.mark.parametrize("files", [COMPOSE_FILES[:1], COMPOSE_FILES], ids=len)
def test_compose_accepts_the_files(copy: Path, files: tuple[str, ...]) -> None:
    """By its own schema and its own reader; a key that it does not know would be refused."""
    done = asked(copy, "config", "--quiet", files=files)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_small_installation_has_one_service_more_than_a_plain_project(copy: Path) -> None:
    """It is what a new .env chooses; a large one has the same programs as services of their own."""
    small = asked(copy, "config", "--services", profile="").stdout.split()
    assert set(small) == {"web", "fairshift", "migrate", "grants", "postgres", "redis"}
    large = asked(copy, "config", "--services", profile="large").stdout.split()
    assert {"worker", "system", "notices", "beat"} <= set(large) - set(small)
    assert set(small) - set(large) == {"fairshift"}


def test_a_secret_that_is_missing_stops_compose(copy: Path) -> None:
    """By its name, with the next step, before anything starts."""
    env_file = copy / ".env"
    before = env_file.read_text()
    secrets = re.findall(r"^([A-Z_]+)=$", (FOLDER / ".env.example").read_text(), re.MULTILINE)
    assert len(secrets) > 5
    try:
        for name in [*secrets, "ALLOWED_HOSTS"]:
            env_file.write_text(re.sub(rf"^{name}=.*$", "", before, flags=re.MULTILINE))
            done = asked(copy, "config", "--quiet", files=COMPOSE_FILES)
            assert done.returncode != 0 and name in done.stderr, name
            assert "make-env" in done.stderr or name == "ALLOWED_HOSTS"
    finally:
        env_file.write_text(before)


def test_make_env_makes_new_secrets_once(copy: Path, tmp_path: Path) -> None:
    """All differ, no other user can read them, and a second call changes nothing."""
    text = (copy / ".env").read_text()
    secrets = re.findall(r"=([0-9a-f]{64}|1:[0-9A-Za-z+/]{43}=)$", text, re.MULTILINE)
    assert len(set(secrets)) == len(
        re.findall(r"^[A-Z_]+=$", (FOLDER / ".env.example").read_text(), re.MULTILINE)
    )
    assert (copy / ".env").stat().st_mode & 0o077 == 0
    again = ran(str(copy / "make-env"))
    assert again.returncode == 1 and ".env is there already" in again.stderr
    assert (copy / ".env").read_text() == text


def test_every_setting_can_be_given(services: dict[str, Any]) -> None:
    """What the settings file reads is passed on, and what is passed on is read.

    A new setting needs its line in compose.yaml and in .env.example.
    """
    known = env._known - LEFT_OUT
    for name in OURS:
        given = set(services[name]["environment"]) - {"FLOWER_BASIC_AUTH"}
        assert given - known == set()
        left = known - given - STATED - (set() if name in SENDERS else MAIL_LOGIN)
        assert not left, f"{name} lacks {sorted(left)}"


def test_a_setting_in_env_reaches_the_processes(copy: Path) -> None:
    """Also one that compose.yaml gives no value."""
    (copy / "other.env").write_text((copy / ".env").read_text() + "FAIRSHIFT_MAX_ATTEMPTS=7\n")
    done = asked(copy, "--env-file", "other.env", "config", "--format", "json")
    assert done.stdout.count('"FAIRSHIFT_MAX_ATTEMPTS": "7"') == len(OURS), done.stderr


def test_each_process_has_only_its_secrets(services: dict[str, Any]) -> None:
    """The system's work is done as the tables' owner; each user of Redis has its part.

    The login of mails is given to what sends them.
    """
    users = {}
    for name in OURS:
        given = services[name]["environment"]
        database = given["DATABASE_URL"].split("://")[1].partition(":")[0]
        users[name] = (
            database.partition("/")[0],
            given["REDIS_URL"].split("://")[1].partition(":")[0],
        )
    assert users == {
        "web": ("fairshift_app", "producer"),
        "fairshift": ("fairshift", "system"),
        "worker": ("fairshift_app", "worker"),
        "system": ("fairshift", "system"),
        "notices": ("fairshift_app", "worker"),
        "beat": ("fairshift_app", "system"),
        "migrate": ("fairshift", "system"),
        "flower": ("postgres", "flower"),
    }
    assert services["flower"]["environment"]["SECRET_KEY"] == "none"
    given = {name for name in OURS if "EMAIL_HOST_PASSWORD" in services[name]["environment"]}
    assert given == SENDERS


def test_every_container_is_hardened(services: dict[str, Any]) -> None:
    """No root user, no capability, no new privilege, a read-only root, and logs that end."""
    for name, facts in services.items():
        user, _, group = facts["user"].partition(":")
        assert int(user) > 0 and group.isdigit(), name
        assert facts["read_only"] is True, name
        assert facts["cap_drop"] == ["ALL"] and not facts.get("cap_add"), name
        assert facts["security_opt"] == ["no-new-privileges:true"], name
        assert facts["logging"]["options"]["max-size"], name
        assert not facts.get("privileged"), name


def test_every_service_that_stays_has_a_health_check(services: dict[str, Any]) -> None:
    """And it is started again after a crash; a one-shot is not."""
    for name, facts in services.items():
        stays = name not in {"migrate", "grants"}
        assert ("healthcheck" in facts) == stays, name
        assert facts["restart"] == ("unless-stopped" if stays else "no"), name


def test_only_pages_have_ports_and_only_of_this_machine(services: dict[str, Any]) -> None:
    """PostgreSQL and Redis are reached from inside only."""
    ports = {name: facts["ports"] for name, facts in services.items() if facts.get("ports")}
    assert set(ports) == {"web", "flower", "grafana"}
    assert {port["host_ip"] for each in ports.values() for port in each} == {"127.0.0.1"}
    for name in ("postgres", "redis", "system", "beat", "prometheus", "migrate", "grants"):
        assert set(services[name]["networks"]) == {"inside"}, name


def test_images_are_pinned(services: dict[str, Any]) -> None:
    """By a whole version, of which nobody makes another one."""
    images = {facts["image"] for facts in services.values()} - {"fairshift:local"}
    bases = {each.words[0] for each in instructions() if each.name == "FROM"}
    for image in images | bases:
        assert re.search(r":v?\d+\.\d+(\.\d+)?(-\w+)*$", image), image
    assert len(bases) == 1


def test_commands_are_those_of_make_up(services: dict[str, Any]) -> None:
    """With the same options; only names, addresses and the number of slots differ."""
    pairs = {
        "worker": programs.job_worker("worker", slots=4),
        "system": programs.system_worker(),
        "notices": programs.notices_worker(),
        "beat": programs.beat(),
        "web": programs.web(port=8000),
        "flower": programs.flower(port=5555, user="u", password="p"),
    }
    for name, program in pairs.items():
        expected, stated = _options(program.command[3:]), _options(services[name]["command"])
        assert expected - stated <= {
            "--bind=127.0.0.1:8000",
            "--address=127.0.0.1",
            "--graceful-timeout=5",
        }


def _options(words: Any) -> set[str]:
    """Return options in the form `--name=value`; the program and words without dashes are left."""
    joined = re.sub(r"(--[a-z-]+) (?=[^-])", r"\1=", " ".join(words))
    return {word for word in joined.split() if word.startswith("--")}


def test_workers_may_end_their_runs(services: dict[str, Any]) -> None:
    """The grace of a stop is longer than that of any step before it."""
    graces = {name: facts.get("stop_grace_period") for name, facts in services.items()}
    assert graces["worker"] == graces["fairshift"] == "5m0s"
    [seconds] = re.findall(r"--graceful-timeout=(\d+)", " ".join(services["web"]["command"]))
    assert int(seconds) < 30 and graces["web"] == "30s"


def test_the_users_of_redis_are_those_of_security_md() -> None:
    """With the same rights; start.sh puts in the passwords."""
    [text] = re.findall(r"```text acl\n(.*?)```", (PROJECT / "SECURITY.md").read_text(), re.DOTALL)
    listed = (FOLDER / "redis/users.acl").read_text()
    assert listed.endswith(f"user default off\n{text}")


def test_the_roles_of_postgresql_are_those_of_security_md() -> None:
    """Each statement of the page is in one of the two files."""
    [text] = re.findall(r"```sql\n(.*?)```", (PROJECT / "SECURITY.md").read_text(), re.DOTALL)
    ours = (FOLDER / "postgres/roles.sh").read_text() + (FOLDER / "postgres/grants.sql").read_text()
    statements = [line for line in text.splitlines() if line and not line.startswith("--")]
    left = [line for line in statements if line not in ours]
    # roles.sh does both while it makes the role.
    assert left == [
        "ALTER ROLE fairshift_app BYPASSRLS;",
        "GRANT fairshift_tenant TO fairshift_app;",
    ]
    assert "CREATE ROLE fairshift_app LOGIN BYPASSRLS" in ours
    assert "GRANT fairshift_tenant TO fairshift, fairshift_app;" in ours


def test_secrets_are_in_no_file_of_git() -> None:
    """.env and keys are ignored, and the example has no value for a secret."""
    for name in (
        ".env",
        "certificates/redis.key",
        "certificates/ca.key",
        "prometheus/token",
        "tasks/my.py",
    ):
        ignored = ran("git", "check-ignore", "--quiet", f"compose/{name}")
        assert ignored.returncode == 0, name
    example = (FOLDER / ".env.example").read_text()
    given = dict(re.findall(r"^([A-Z_]+)=(.+)$", example, re.MULTILINE))
    assert not any(SECRETS.search(name) for name in given)
