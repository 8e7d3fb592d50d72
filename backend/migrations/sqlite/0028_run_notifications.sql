-- Where the end of a run is posted, if the program that started it wants that. The URL may contain a secret of the
-- receiver, so it is in no list and in no entry of the log.
CREATE TABLE run_callbacks (
    run_id BLOB NOT NULL PRIMARY KEY,
    url TEXT NOT NULL
) STRICT;

-- Deliveries about runs have no review.
DROP INDEX deliveries_review;
ALTER TABLE deliveries ADD COLUMN about_review BLOB;
UPDATE deliveries SET about_review = review_id;
ALTER TABLE deliveries DROP COLUMN review_id;
ALTER TABLE deliveries RENAME COLUMN about_review TO review_id;
CREATE INDEX deliveries_review ON deliveries (review_id);
CREATE INDEX deliveries_run ON deliveries (run_id, review_id);
