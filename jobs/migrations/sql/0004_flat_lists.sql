-- Refuse lists of several dimensions or with nulls, which only raw SQL writes: one such row would stop
-- the events of all endpoints and subscriptions.
DO $$
DECLARE
    named record;
BEGIN
    FOR named IN VALUES
        ('jobs_webhookendpoint', 'events'), ('jobs_webhookendpoint', 'tasks'),
        ('jobs_webhookendpoint', 'states'), ('jobs_mailsubscription', 'events'),
        ('jobs_mailsubscription', 'tasks'), ('jobs_mailsubscription', 'states'),
        ('jobs_mailsubscription', 'addresses')
    LOOP
        EXECUTE format(
            'ALTER TABLE %1$I ADD CONSTRAINT %3$I CHECK (CASE array_ndims(%2$I)'
            ' WHEN 1 THEN array_position(%2$I, NULL) IS NULL ELSE %2$I = ''{}'' END)',
            named.column1, named.column2,
            named.column1 || '_' || named.column2 || '_is_a_flat_list');
    END LOOP;
END $$;
