-- Runs and attempts: one partition for each day, by ranges of ids, and a default partition. Ids
-- begin with their time in milliseconds, so a range of ids is a range of time.

CREATE TABLE jobs_run (
    id            uuid PRIMARY KEY,
    owner_id      bigint NOT NULL,
    job_id        bigint,
    submission_id bigint,
    target_id     bigint,
    worker_id     uuid,
    task          varchar(255) NOT NULL,
    queue         varchar(100) NOT NULL,
    state         varchar(10) NOT NULL,
    priority      smallint NOT NULL DEFAULT 5 CHECK (priority BETWEEN 0 AND 9),
    payload       bytea NOT NULL,
    payload_key   smallint NOT NULL DEFAULT 0,
    result        bytea,
    result_key    smallint NOT NULL DEFAULT 0,
    labels        jsonb NOT NULL DEFAULT '{}',
    token         integer NOT NULL DEFAULT 0,
    attempt_count smallint NOT NULL DEFAULT 0,
    max_attempts  smallint NOT NULL,
    policy        jsonb NOT NULL DEFAULT '{}',
    options       jsonb NOT NULL DEFAULT '{}',
    lock_key      varchar(301) NOT NULL DEFAULT '',
    blocked_by    varchar(8) NOT NULL DEFAULT '',
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at        timestamptz,
    next_at       timestamptz,
    deadline_at   timestamptz,
    queued_at     timestamptz,
    hint_check_at timestamptz,
    admitted_at   timestamptz,
    started_at    timestamptz,
    ended_at      timestamptz,
    error_type    varchar(200) NOT NULL DEFAULT '',
    error_message text NOT NULL DEFAULT '',
    history       jsonb NOT NULL,
    not_after     timestamptz,
    closes_at     timestamptz,
    stop_at       timestamptz,
    window_policy varchar(10) NOT NULL DEFAULT '',
    earlier_attempts integer NOT NULL DEFAULT 0,
    -- Encrypted texts of errors, in place of those above:
    error_data    bytea,
    error_key     smallint NOT NULL DEFAULT 0,
    -- What a running task writes of itself:
    progress      jsonb,
    checkpoint    bytea,
    checkpoint_key smallint NOT NULL DEFAULT 0,
    CONSTRAINT run_state_known CHECK (state IN (
        'scheduled', 'held', 'queued', 'admitted', 'running', 'cancelling',
        'retrying', 'succeeded', 'failed', 'cancelled', 'expired'))
) PARTITION BY RANGE (id);

-- An index costs time at every move of a run, so each one names the query that needs it.
-- Lists of one owner, newest first:
CREATE INDEX run_of_owner ON jobs_run (owner_id, id);
-- Progress of a submission, and its runs by state:
CREATE INDEX run_of_submission ON jobs_run (submission_id, state, id) WHERE submission_id IS NOT NULL;
-- A job's last results:
CREATE INDEX run_of_job ON jobs_run (job_id, id) WHERE job_id IS NOT NULL;
-- Runs of one target:
CREATE INDEX run_of_target ON jobs_run (target_id, id) WHERE target_id IS NOT NULL;
-- Lists by state, and counts of owners by state; succeeded runs are nearly all rows and need none:
CREATE INDEX run_by_state ON jobs_run (state, id) INCLUDE (owner_id) WHERE state <> 'succeeded';
-- Failed runs by owner, task and error, without their rows; written only when a run fails:
CREATE INDEX run_failed ON jobs_run (id) INCLUDE (owner_id, task, error_type) WHERE state = 'failed';
-- Promotion:
CREATE INDEX run_delayed ON jobs_run (next_at) WHERE state IN ('scheduled', 'held', 'retrying');
-- The sweep, which publishes lost hints again:
CREATE INDEX run_queued ON jobs_run (queue, hint_check_at) WHERE state = 'queued' AND blocked_by = '';
-- Runs that wait for a cap, a lock or the end of a pause:
CREATE INDEX run_blocked ON jobs_run (owner_id, blocked_by) WHERE state = 'queued' AND blocked_by <> '';
-- Ended runs of whose end Celery may not know yet:
CREATE INDEX run_untold ON jobs_run (ended_at)
    WHERE options <> '{}' AND state IN ('failed', 'cancelled', 'expired');
-- Deadlines:
CREATE INDEX run_deadline ON jobs_run (deadline_at)
    WHERE state IN ('scheduled', 'held', 'queued') AND deadline_at IS NOT NULL;
-- Rescue; caps:
CREATE INDEX run_on_worker ON jobs_run (worker_id) WHERE state IN ('admitted', 'running', 'cancelling');
CREATE INDEX run_active_of_owner ON jobs_run (owner_id) WHERE state IN ('admitted', 'running', 'cancelling');
-- Search by label:
CREATE INDEX run_labels ON jobs_run USING gin (labels jsonb_path_ops) WHERE labels <> '{}';
-- Locks:
CREATE INDEX run_lock ON jobs_run (lock_key)
    WHERE lock_key <> '' AND state IN ('admitted', 'running', 'cancelling');

-- Open runs of jobs whose runs may not overlap; each has a lock key:
CREATE INDEX run_open_of_job ON jobs_run (job_id)
    WHERE lock_key <> '' AND job_id IS NOT NULL AND submission_id IS NULL
      AND state NOT IN ('succeeded', 'failed', 'cancelled', 'expired');
-- Queued runs whose opening is over:
CREATE INDEX run_closing ON jobs_run (not_after) WHERE state = 'queued' AND not_after IS NOT NULL;
-- Active runs that are to be stopped:
CREATE INDEX run_stopping ON jobs_run (stop_at)
    WHERE state IN ('admitted', 'running') AND stop_at IS NOT NULL;

-- Rollups: runs that ended in one minute, which are few, as succeeded ones always have an attempt:
CREATE INDEX run_ended ON jobs_run (ended_at) WHERE state IN ('failed', 'cancelled', 'expired');

CREATE TABLE jobs_run_default PARTITION OF jobs_run DEFAULT;

CREATE TABLE jobs_attempt (
    run_id        uuid NOT NULL,
    token         integer NOT NULL,
    number        smallint NOT NULL,
    worker_id     uuid,
    outcome       varchar(12) NOT NULL,
    admitted_at   timestamptz NOT NULL,
    started_at    timestamptz,
    ended_at      timestamptz NOT NULL,
    error_type    varchar(200) NOT NULL DEFAULT '',
    error_message text NOT NULL DEFAULT '',
    traceback     text NOT NULL DEFAULT '',
    queued_at     timestamptz,
    -- When the row was written, for the rollups:
    recorded_at   timestamptz DEFAULT clock_timestamp(),
    run_state     varchar(10) NOT NULL DEFAULT '',
    error_data    bytea,
    error_key     smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, token)
) PARTITION BY RANGE (run_id);

-- Rollups: attempts of one minute. Values rise with the pages of the table, so their ranges suffice, and
-- an insert writes nothing. Autovacuum summarizes a range of pages when it is full:
CREATE INDEX attempt_recorded ON jobs_attempt USING brin (recorded_at)
    WITH (pages_per_range = 64, autosummarize = on);

CREATE TABLE jobs_attempt_default PARTITION OF jobs_attempt DEFAULT;
