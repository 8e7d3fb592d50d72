-- The index of the log names who decided, and so gives the order of decisions. It is created again from the first row on.
DROP TABLE decided_reviews;
DROP TABLE unlisted_decisions;
UPDATE log_index SET next = 0;
TRUNCATE log_blocks;
