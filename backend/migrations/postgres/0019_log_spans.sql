-- The blocks that have a term or a word are sought in spans of 1,024, the newest first. With the span of each block in the
-- index, it goes through those of the spans that are asked for only, however many others have the same.
DROP INDEX log_blocks_terms;
CREATE INDEX log_blocks_terms ON log_blocks USING GIN (terms, (ARRAY[block / 1024])) WITH (fastupdate = off);
