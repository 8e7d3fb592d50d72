-- How often people have changed. A server reads everyone who may log in once for each revision, and not for each
-- group of changes that depends on who there is.
CREATE TABLE people_revision (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO people_revision (one, revision) VALUES (1, 0);
CREATE TRIGGER people_added AFTER INSERT ON users BEGIN UPDATE people_revision SET revision = revision + 1 WHERE one = 1; END;
CREATE TRIGGER people_changed AFTER UPDATE ON users BEGIN UPDATE people_revision SET revision = revision + 1 WHERE one = 1; END;
CREATE TRIGGER people_removed AFTER DELETE ON users BEGIN UPDATE people_revision SET revision = revision + 1 WHERE one = 1; END;
