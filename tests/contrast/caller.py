"""A client of the scenes' workers in the tests' own process: calls tasks, and commands workers."""

import subprocess
from typing import Any

from celery import Celery
from celery.app.control import Inspect
from celery.result import AsyncResult

from fleet.transport import scripts
from fleet.wiring import register
from tests.contrast.installation import Contrast
from tests.control import await_heard
from tests.waiting import wait_for


class Caller:
    """Calls the tasks of one fair side, and sees what its queue counts."""

    def __init__(self, scene: Contrast, *, fair: list[str]) -> None:
        register()
        self.scene = scene
        environ = scene._environ
        self.app = Celery(
            "caller",
            broker=environ["CONTRAST_BROKER"],
            backend=environ.get("CONTRAST_BACKEND"),
            set_as_current=False,
        )
        self.app.conf.update(
            task_default_queue=scene.queue,
            broker_transport_options={"fair_queues": fair},
        )

    def call(self, task: str, *args: Any, more: str = "", **options: Any) -> AsyncResult:
        """Call a task, on the scene's queue or on the one with `more` in its name."""
        queue = self.scene.queue + more
        # Nobody waits for the results of others, nor when the scene and its Redis are gone.
        options.setdefault("ignore_result", task != "add")
        return self.app.send_task(f"contrast.{task}", args, queue=queue, **options)

    def signature(self, task: str, *args: Any) -> Any:
        return self.app.signature(f"contrast.{task}", args)

    def count(self, name: str, more: str = "") -> int:
        """Return one of the numbers of a fair queue: see counters.lua."""
        flat = scripts.run(self.scene.client, self.scene.queue + more, "counters")
        return int(dict(zip(flat[::2], flat[1::2], strict=True)).get(name.encode(), 0))

    def await_idle(self, *, seconds: float = 15) -> None:
        """Return when nothing is known to the queue any more."""
        wait_for(lambda: self.count("messages") == 0, seconds=seconds, what="an idle queue")

    def await_line(self, word: str, *names: str, seconds: float = 15) -> list[Any]:
        """Return the lines in which the tasks' log says this word of these names, one each."""
        known: Any = wait_for(
            lambda: _all_of(names, [line for line in self.scene.lines if line.word == word]),
            seconds=seconds,
            what=f"{word} of {names}",
        )
        return [known[name] for name in names]

    # --- commands ----------------------------------------------------------------------

    def node(self, worker: subprocess.Popen[bytes]) -> str:
        """Return the name by which commands reach a worker."""
        return f"celery@{self.scene.name(worker)}"

    def inspect(self, worker: subprocess.Popen[bytes]) -> Inspect:
        return self.app.control.inspect([self.node(worker)], timeout=5, limit=1)

    def seen(self, worker: subprocess.Popen[bytes], what: str) -> Any:
        """Return what one worker answers to `celery inspect <what>`."""
        await_heard(self.app, self.node(worker))
        answers = getattr(self.inspect(worker), what)()
        assert answers, f"no answer to {what}"
        return answers[self.node(worker)]

    def command(self, worker: subprocess.Popen[bytes], act: str, *args: Any, **more: Any) -> None:
        """Send one worker a control command, and see it accepted."""
        await_heard(self.app, self.node(worker))
        to = {"destination": [self.node(worker)], "reply": True, "timeout": 5}
        [answer] = getattr(self.app.control, act)(*args, **to, **more)
        assert "ok" in answer[self.node(worker)], answer

    def close(self) -> None:
        self.app.close()


def _all_of(names: tuple[str, ...], lines: list[Any]) -> dict[str, Any] | None:
    known: dict[str, Any] = {}
    for line in lines:
        known.setdefault(line.name, line)
    return known if set(names) <= known.keys() else None
