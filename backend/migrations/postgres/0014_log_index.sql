-- An index of the log and of the words of reviews, made of the log beside the commits. It begins at the first row and
-- catches up while the server runs; what it has not reached is read from the log itself.
CREATE TABLE log_index (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    -- The number of the first row that is not indexed.
    next BIGINT NOT NULL
);
INSERT INTO log_index (one, next) VALUES (1, 0);

-- 32 numbers of rows each: block 3 has those from 96 to 127.
CREATE TABLE log_blocks (
    block BIGINT PRIMARY KEY,
    -- The latest time of an entry up to its end.
    latest BIGINT NOT NULL,
    -- By how much, at most, an entry up to its end is earlier than an entry of a block before its own, in microseconds.
    behind BIGINT NOT NULL,
    -- Which of its rows have which term: 8 bytes name a term, and a bit of the 4 bytes behind them stands for each row.
    masks BYTEA NOT NULL,
    -- The terms and the words of its rows.
    terms TSVECTOR NOT NULL
);
CREATE INDEX log_blocks_latest ON log_blocks (latest, block);
-- Without a list of what is yet to be put in, which every search would have to read.
CREATE INDEX log_blocks_terms ON log_blocks USING GIN (terms) WITH (fastupdate = off);

-- The words of reviews.
CREATE TABLE review_words (
    review_id UUID PRIMARY KEY,
    pending BIGINT NOT NULL,
    words TSVECTOR NOT NULL
);
CREATE INDEX review_words_pending ON review_words USING GIN (words) WITH (fastupdate = off) WHERE pending = 1;
CREATE INDEX review_words_past ON review_words USING GIN (words) WITH (fastupdate = off) WHERE pending = 0;

-- Lists of runs: of a flow, and of whoever started them.
CREATE INDEX runs_flow ON runs (flow, created_at, id) WHERE carries_question = 0;
CREATE INDEX runs_requested ON runs (requested_by, created_at, id) WHERE carries_question = 0;
