-- How often people have changed: the sum of all counters. A server reads everyone who may log in once for each revision,
-- and not for each group of changes that depends on who there is. People are written before the lock of the log is
-- taken, and a counter is locked until its transaction ends. So there are many, and a connection always uses the same:
-- with a single one, a transaction that changes a person would hold up all others that do.
CREATE TABLE people_revision (
    slot BIGINT PRIMARY KEY CHECK (slot BETWEEN 0 AND 63),
    revision BIGINT NOT NULL
);
INSERT INTO people_revision (slot, revision) SELECT slot, 0 FROM generate_series(0, 63) AS slot;
CREATE FUNCTION people_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE people_revision SET revision = revision + 1 WHERE slot = pg_backend_pid() % 64;
    RETURN NULL;
END
$$;
CREATE TRIGGER people_changed AFTER INSERT OR UPDATE OR DELETE ON users
    FOR EACH STATEMENT EXECUTE FUNCTION people_changed();
