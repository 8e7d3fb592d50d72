-- How often people have changed. A server reads everyone who may log in once for each revision, and not for each
-- group of changes that depends on who there is. People are written before the lock of the log is taken.
CREATE TABLE people_revision (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    revision BIGINT NOT NULL
);
INSERT INTO people_revision (one, revision) VALUES (1, 0);
CREATE FUNCTION people_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE people_revision SET revision = revision + 1 WHERE one = 1;
    RETURN NULL;
END
$$;
CREATE TRIGGER people_changed AFTER INSERT OR UPDATE OR DELETE ON users
    FOR EACH STATEMENT EXECUTE FUNCTION people_changed();
