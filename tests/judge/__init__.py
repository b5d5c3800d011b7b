"""The judge: stands outside the system and says whether its promises held.

It reads three things: the log that tasks append to, the submitters' log, and the rows of
runs and attempts by plain SQL. It imports nothing of Fairshift, so that the system is not
judged by itself.
"""

from tests.judge.checker import judge
from tests.judge.log import SubmitLog, TaskLog, read_submit_events, read_task_events
from tests.judge.verdict import Verdict

__all__ = ["SubmitLog", "TaskLog", "Verdict", "judge", "read_submit_events", "read_task_events"]
