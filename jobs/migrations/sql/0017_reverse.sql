ALTER TABLE jobs_run DROP COLUMN error_data, DROP COLUMN error_key;
ALTER TABLE jobs_attempt DROP COLUMN error_data, DROP COLUMN error_key;
