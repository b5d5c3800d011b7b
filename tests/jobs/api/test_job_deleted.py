"""jobs/api/jobs/writing.py: a job is deleted with the notices that name it."""

import pytest

from jobs.models import Job, Owner
from tests.jobs.api.conftest import Caller
from tests.jobs.api.job_scenes import change, made
from tests.jobs.noticed_jobs import naming_counts, notice


@pytest.mark.usefixtures("committed")
def test_a_job_that_notices_name_is_deleted(caller: Caller, acme: Owner) -> None:
    """The role of requests may not read all of these tables; the deletion is not its own."""
    client = caller(acme)
    answer = made(client)
    job = Job.objects.get()
    notice(job)
    gone = change(client, "delete", f"/jobs/{job.pk}", etag=answer["ETag"])
    assert gone.status_code == 204, gone.content
    assert not Job.objects.exists() and naming_counts() == [0] * 5
