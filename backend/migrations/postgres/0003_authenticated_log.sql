-- The public key whose seals are this database's. None: nobody has sealed it yet.
ALTER TABLE meta ADD COLUMN seal_key TEXT;
-- The last row of the log that may have been written without the key.
ALTER TABLE meta ADD COLUMN unauthenticated_to BIGINT;
-- The name of the key of whoever wrote the row, and an HMAC with it. See docs/audit.md.
ALTER TABLE log ADD COLUMN mac BYTEA;

-- Numbers for rows of the log, which their HMACs cover. They are in the order of commits: the lock of the log is held
-- until then.
CREATE FUNCTION log_numbers(wanted BIGINT) RETURNS SETOF BIGINT LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1668248942, 1); -- 'coun'
    PERFORM set_config('idle_in_transaction_session_timeout', '1000', true);
    RETURN QUERY SELECT nextval(pg_get_serial_sequence('log', 'seq')) FROM generate_series(1, wanted);
END
$$;
