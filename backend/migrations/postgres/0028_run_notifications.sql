-- Where the end of a run is posted, if the program that started it wants that. The URL may contain a secret of the
-- receiver, so it is in no list and in no entry of the log.
CREATE TABLE run_callbacks (
    run_id UUID NOT NULL PRIMARY KEY,
    url TEXT NOT NULL
);

-- Deliveries about runs have no review.
ALTER TABLE deliveries ALTER COLUMN review_id DROP NOT NULL;
CREATE INDEX deliveries_run ON deliveries (run_id, review_id);
