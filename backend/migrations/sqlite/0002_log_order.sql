-- A place in the log is the number of a row, in both databases.
DROP INDEX seals_place;
ALTER TABLE seals DROP COLUMN xid;
CREATE INDEX seals_place ON seals (seq);
