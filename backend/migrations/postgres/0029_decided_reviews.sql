-- Who decided which review, by the time of their last decision on it, so that people find what they decided. The server
-- fills it for the reviews of earlier versions when it starts.
CREATE TABLE decided_reviews (
    username TEXT NOT NULL,
    decided_at BIGINT NOT NULL,
    review_id UUID NOT NULL,
    PRIMARY KEY (username, decided_at, review_id)
);
UPDATE reviews SET severity_rank = NULL
    WHERE id IN (SELECT review_id FROM review_audience WHERE subject LIKE 'decided:%');

-- The runs of reviews that were archived, so that an old link can say where the review is. Reviews that were archived
-- before are not in it.
CREATE TABLE archived_reviews (
    id UUID NOT NULL PRIMARY KEY,
    run_id UUID NOT NULL
);
