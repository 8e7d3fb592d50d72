-- The sequence is looked up once for all numbers, since every writer waits for the lock that is held meanwhile.
CREATE OR REPLACE FUNCTION log_numbers(wanted BIGINT) RETURNS SETOF BIGINT LANGUAGE plpgsql AS $$
DECLARE
    numbers CONSTANT regclass := pg_get_serial_sequence('log', 'seq');
BEGIN
    PERFORM pg_advisory_xact_lock(1668248942, 1); -- 'coun'
    PERFORM set_config('idle_in_transaction_session_timeout', '1000', true);
    RETURN QUERY SELECT nextval(numbers) FROM generate_series(1, wanted);
END
$$;
