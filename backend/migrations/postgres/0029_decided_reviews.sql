-- Who decided which review, by the time of their last decision on it, so that people find what they decided.
CREATE TABLE decided_reviews (
    username TEXT NOT NULL,
    decided_at BIGINT NOT NULL,
    review_id UUID NOT NULL,
    PRIMARY KEY (username, decided_at, review_id)
);

-- The reviews that were stored before, and whose decisions the server has still to list while it runs: those after one
-- id, up to another. No row if there were none.
CREATE TABLE unlisted_decisions (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    after_id UUID NOT NULL,
    last_id UUID NOT NULL
);
INSERT INTO unlisted_decisions (one, after_id, last_id)
    SELECT 1, CAST('00000000-0000-0000-0000-000000000000' AS UUID), id FROM reviews ORDER BY id DESC LIMIT 1;

-- The runs of reviews that were archived, so that an old link can say where the review is. Reviews that were archived
-- before are not in it.
CREATE TABLE archived_reviews (
    id UUID NOT NULL PRIMARY KEY,
    run_id UUID NOT NULL
);
