-- An index of the log and of the words of reviews, made of the log beside the commits. It begins at the first row and
-- catches up while the server runs; what it has not reached is read from the log itself.
CREATE TABLE log_index (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- The number of the first row that is not indexed.
    next INTEGER NOT NULL
) STRICT;
INSERT INTO log_index (one, next) VALUES (1, 0);

-- 32 numbers of rows each: block 3 has those from 96 to 127.
CREATE TABLE log_blocks (
    block INTEGER PRIMARY KEY,
    -- The latest time of an entry up to its end.
    latest INTEGER NOT NULL,
    -- By how much, at most, an entry up to its end is earlier than an entry of a block before its own, in microseconds.
    behind INTEGER NOT NULL,
    -- Which of its rows have which term: 8 bytes name a term, and a bit of the 4 bytes behind them stands for each row.
    masks BLOB NOT NULL
) STRICT;
CREATE INDEX log_blocks_latest ON log_blocks (latest, block);
-- The terms and the words of the blocks, by their number.
CREATE VIRTUAL TABLE log_terms USING fts5(terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- The words of reviews, in one table for those that are pending and in one for those that are over.
CREATE TABLE review_numbers (
    number INTEGER PRIMARY KEY,
    review_id BLOB NOT NULL UNIQUE,
    pending INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE pending_words USING fts5(words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
CREATE VIRTUAL TABLE past_words USING fts5(words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- Lists of runs: of a flow, and of whoever started them.
CREATE INDEX runs_flow ON runs (flow, created_at, id) WHERE carries_question = 0;
CREATE INDEX runs_requested ON runs (requested_by, created_at, id) WHERE carries_question = 0;
