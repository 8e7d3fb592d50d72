-- What waits has tables of its own, whose rows go when it is over, and what a commit changes stands in no index of the
-- rows that stay: so a decision changes few pages.

-- Runs by status, but for those that are completed, as nearly all are in the end: these are found along `runs_created`.
CREATE TABLE runs_by_status (
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (status, created_at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO runs_by_status (status, created_at, id)
    SELECT status, created_at, id FROM runs WHERE status <> 'completed' AND carries_question = 0
    ORDER BY status, created_at, id;
DROP INDEX runs_status;
DROP INDEX runs_finished;
-- The visits of a run's nodes in order, as a JSON array, as long as they are few; where they are many, and where an
-- earlier version wrote them, each has a row in `steps`, and this is empty or nothing.
ALTER TABLE runs ADD COLUMN steps TEXT;

-- Pending reviews in the order of urgency. Filled by the server when it starts.
CREATE TABLE queue (
    -- The deadline; 253402300799999999 (the end of the year 9999) where there is none.
    due INTEGER NOT NULL,
    -- From 0 (critical) to 3 (low).
    severity_rank INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    id BLOB NOT NULL,
    class BLOB NOT NULL,
    -- When the claim of it ends; 0 where nobody has claimed it.
    claimed_until INTEGER NOT NULL,
    -- Of which kind it is and who asked it, where no flow did.
    question TEXT,
    PRIMARY KEY (due, severity_rank, created_at, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_questions ON queue (question) WHERE question IS NOT NULL;

-- What pending reviews have in common that filters and rights cannot tell from one another, by its digest. One of which
-- no review is pending any more stays for a while.
CREATE TABLE classes (
    class BLOB NOT NULL PRIMARY KEY,
    outline TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Reviews that ended without a decision: `expired` or `withdrawn`.
CREATE TABLE undecided_reviews (
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (status, created_at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO undecided_reviews (status, created_at, id)
    SELECT status, created_at, id FROM reviews WHERE status IN ('expired', 'withdrawn')
    ORDER BY status, created_at, id;

DROP INDEX reviews_status;
DROP INDEX reviews_urgency;
DROP INDEX reviews_class;
DROP INDEX reviews_asked;
DROP INDEX reviews_unfilled;
ALTER TABLE reviews DROP COLUMN class;
-- Which tags its reviewers need, as a JSON array; nothing where they need none.
ALTER TABLE reviews ADD COLUMN tags TEXT;
UPDATE reviews SET tags = (
    SELECT json_group_array(substr(a.subject, 7)) FROM review_audience a
    WHERE a.review_id = reviews.id AND a.subject LIKE 'needs:%'
) WHERE id IN (SELECT review_id FROM review_audience WHERE subject >= 'needs:' AND subject < 'needs;');
UPDATE reviews SET severity_rank = NULL WHERE status = 'pending' OR facts IS NULL;
CREATE INDEX reviews_unfilled ON reviews (id) WHERE severity_rank IS NULL;
CREATE INDEX reviews_asked ON reviews (created_at, id, flow, kind);

-- Under which subjects reviews are found, pending or not. Which those of a review are, the review says.
ALTER TABLE review_audience RENAME TO old_audience;
CREATE TABLE review_audience (
    subject TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    review_id BLOB NOT NULL,
    PRIMARY KEY (subject, created_at, review_id)
) STRICT, WITHOUT ROWID;
INSERT INTO review_audience (subject, created_at, review_id)
    SELECT subject, created_at, review_id FROM old_audience WHERE subject NOT LIKE 'question:%' AND subject <> 'watched'
    ORDER BY subject, created_at, review_id;
DROP TABLE old_audience;
