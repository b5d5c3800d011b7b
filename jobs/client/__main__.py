"""The command `fairshift`, also `python -m jobs.client`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from jobs.client.actions import act, is_action
from jobs.client.api import Api, Away, Refused, UsageError
from jobs.client.arguments import parser
from jobs.client.commands import Exit
from jobs.client.logs import WORDS, logs
from jobs.client.terminal import say


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status. Errors are a line on the standard error."""
    words = sys.argv[1:] if words is None else list(words)
    given = None if is_action(words) else parser().parse_args(words)
    try:
        url, token = (_variable(name) for name in ("FAIRSHIFT_URL", "FAIRSHIFT_TOKEN"))
        api = Api(url, token)
        status: Exit
        if words[:2] == WORDS:
            status = logs(api, words[2:])
        else:
            status = act(api, words) if given is None else given.run(api, given)
        sys.stdout.flush()
        return status
    except UsageError as error:
        return _failed(error, Exit.USAGE)
    except Refused as error:
        return _failed(error, Exit.REFUSED)
    except Away as error:
        return _failed(error, Exit.AWAY)
    except BrokenPipeError:
        # The reader has what it wants; Python must not complain at its end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise UsageError(f"set the variable {name}")
    return value


def _failed(error: Exception, status: Exit) -> Exit:
    for line in f"fairshift: {error}".split("\n"):
        say(line, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
