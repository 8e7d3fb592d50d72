-- Who decided which review, by the time of their last decision on it, so that people find what they decided.
CREATE TABLE decided_reviews (
    username TEXT NOT NULL,
    decided_at INTEGER NOT NULL,
    review_id BLOB NOT NULL,
    PRIMARY KEY (username, decided_at, review_id)
) STRICT, WITHOUT ROWID;

-- The reviews that were stored before, and whose decisions the server has still to list while it runs: those after one
-- id, up to another. No row if there were none.
CREATE TABLE unlisted_decisions (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    after_id BLOB NOT NULL,
    last_id BLOB NOT NULL
) STRICT;
INSERT INTO unlisted_decisions (one, after_id, last_id)
    SELECT 1, zeroblob(16), id FROM reviews ORDER BY id DESC LIMIT 1;

-- The runs of reviews that were archived, so that an old link can say where the review is. Reviews that were archived
-- before are not in it.
CREATE TABLE archived_reviews (
    id BLOB NOT NULL PRIMARY KEY,
    run_id BLOB NOT NULL
) STRICT, WITHOUT ROWID;
