-- The index of the log names who decided, and so gives the order of decisions. It is created again from the first row on.
DROP TABLE decided_reviews;
DROP TABLE unlisted_decisions;
UPDATE log_index SET next = 0;
DELETE FROM log_blocks;
DROP TABLE log_terms;
CREATE VIRTUAL TABLE log_terms USING fts5(terms, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
