"""A program on a machine of its own that submits over HTTP, each run until it has an answer.

`python caller.py LOG URL TOKEN RUNS PER_SECOND SEED`: the log is that of the judge's submitters.
A run is of owner `owner-N`, N by its number. Each 4.5 s one takes seconds, so that there is always
one at work. Three more words are the name of these runs, the number of the first, and fields of all
their bodies.
"""

import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import urllib3

from tests.judge.log import SubmitLog

OWNERS: Final = 20
THREADS: Final = 16
LONG_EACH_SECONDS: Final = 4.5
"""By time and not by number: at any rate, the workers have slots for the others."""
AGAIN_SECONDS: Final = 0.5
RETRIED: Final = frozenset({429, 500, 502, 503, 504})
"""Answers after which the same key is sent again: it is not known whether it was stored."""


def main() -> None:
    """Submit at a steady rate; exit with an error if a request is refused."""
    path, url, token, runs, rate, seed, *more = sys.argv[1:]
    name, first, fields = more or ("order", "0", "{}")
    log, chance = SubmitLog(path), random.Random(int(seed))
    pool = urllib3.PoolManager(retries=False, timeout=10, maxsize=THREADS)
    spans = [round(chance.uniform(0.02, 0.2), 2) for _ in range(int(runs))]
    step = max(1, round(LONG_EACH_SECONDS * float(rate)))
    spans[::step] = [round(chance.uniform(3, 12), 2) for _ in spans[::step]]
    begun_at = time.monotonic()

    def submit(number: int) -> int:
        time.sleep(max(0.0, begun_at + number / float(rate) - time.monotonic()))
        key, sent = f"{name}-{int(first) + number}", 0
        body = {
            "task": "machines.work",
            "owner": f"owner-{(int(first) + number) % OWNERS}",
            "arguments": {"seconds": spans[number]},
            "labels": {"judge_key": key},
            "max_attempts": 30,
            **json.loads(fields),
        }
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        }
        log.intend(key)
        while True:
            sent += 1
            try:
                content = json.dumps(body).encode()
                answer = pool.request("POST", f"{url}/api/v1/runs", body=content, headers=headers)
            except urllib3.exceptions.HTTPError:
                pass
            else:
                if answer.status == 202:
                    log.ok(key, [json.loads(answer.data)["id"]])
                    return sent
                if answer.status not in RETRIED:
                    raise RuntimeError(f"{answer.status}: {answer.data[:500]!r}")
            time.sleep(AGAIN_SECONDS)

    with ThreadPoolExecutor(THREADS) as threads:
        sent = sum(threads.map(submit, range(int(runs))))
    print(json.dumps({"requests": sent, "repeated": sent - int(runs)}), flush=True)


if __name__ == "__main__":
    main()
