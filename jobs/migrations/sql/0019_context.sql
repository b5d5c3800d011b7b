-- What a running task writes of itself. Empty columns rewrite no table.
ALTER TABLE jobs_run
    ADD COLUMN progress jsonb,
    ADD COLUMN checkpoint bytea,
    ADD COLUMN checkpoint_key smallint NOT NULL DEFAULT 0;
