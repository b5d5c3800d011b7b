-- Encrypted texts of errors, beside the columns for plain ones. The defaults rewrite no table.
ALTER TABLE jobs_run
    ADD COLUMN error_data bytea,
    ADD COLUMN error_key smallint NOT NULL DEFAULT 0;
ALTER TABLE jobs_attempt
    ADD COLUMN error_data bytea,
    ADD COLUMN error_key smallint NOT NULL DEFAULT 0;
