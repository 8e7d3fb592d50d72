-- Runs that were written to files and removed. One row for each piece of a file: an entry of the log says the same, and
-- it is what counts; this is how it is found.
CREATE TABLE archives (
    -- From 1, without gaps.
    number BIGINT NOT NULL PRIMARY KEY,
    -- The row of the log that holds the entry `runs.archived`.
    seq BIGINT NOT NULL,
    -- Where it is: the name of the file, and the bytes in it.
    file TEXT NOT NULL,
    position BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    at BIGINT NOT NULL,
    -- The last row of the log that this archive or one before it holds: what reads all entries cannot begin before it.
    up_to BIGINT NOT NULL
);
CREATE INDEX archives_file ON archives (file, position);

CREATE TABLE archived_runs (
    id UUID NOT NULL PRIMARY KEY,
    flow TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    ended_at BIGINT NOT NULL,
    archive BIGINT NOT NULL,
    -- 0 while other tables still have rows of it.
    removed BIGINT NOT NULL
);
CREATE INDEX archived_runs_unremoved ON archived_runs (id) WHERE removed = 0;

-- Where runs are looked for that are old enough to be archived.
CREATE INDEX runs_finished ON runs (flow, created_at, id)
    WHERE status IN ('completed', 'failed', 'cancelled') AND carries_question = 0;
CREATE INDEX runs_carriers ON runs (created_at, id) WHERE carries_question = 1;
