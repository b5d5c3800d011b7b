"""The operator of the demo, who resumes rollouts that were stopped, as a person would."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.contrib.auth import get_user_model
from django.db.models.functions import Now
from django.urls import reverse

from config.demo.screen import Screen
from config.demo.world import Login
from jobs.actions import perform
from jobs.actions.rollouts import RolloutResume
from jobs.actions.submissions import SUBMISSIONS
from jobs.models import Rollout, RolloutState, Submission
from jobs.models.access import access_of

[RESUME] = [action for action in SUBMISSIONS.actions if action.name == "resume"]
RESUMES_AFTER: Final = timedelta(seconds=2)


class Operator:
    """Looks at the rollouts of some submissions, and says on the screen what it finds and does."""

    def __init__(
        self, submissions: Sequence[Submission], *, login: Login, site: str, screen: Screen
    ) -> None:
        self.resumed: list[str] = []
        """Addresses of the pages of those that were resumed."""
        self._user = get_user_model().objects.get(username=login.user)
        self._site, self._screen = site, screen
        self._stopped = Rollout.objects.filter(
            submission__in=submissions, state=RolloutState.STOPPED
        )
        self._seen: set[int] = set()

    def look(self) -> None:
        """Name the rollouts that are stopped, and resume those that have been for some seconds."""
        for rollout in self._stopped.select_related("submission__owner").annotate(now=Now()):
            submission = rollout.submission
            what = f"{submission.label} of {submission.owner.slug}"
            page = self._site + reverse("jobs:submission", args=[submission.pk])
            if rollout.pk not in self._seen:
                self._seen.add(rollout.pk)
                self._screen.say(f"Stopped: {what}: {rollout.reason}: {page}")
            elif rollout.now - rollout.changed_at >= RESUMES_AFTER:
                self._resume(submission)
                self._seen.discard(rollout.pk)
                self.resumed.append(page)
                self._screen.say(f"Resumed: {what}, its failed run first")

    def _resume(self, submission: Submission) -> None:
        body = RolloutResume(retry_failed=True, reason="the device has room now")
        perform(SUBMISSIONS, RESUME, submission.pk, body, by=access_of(self._user))
