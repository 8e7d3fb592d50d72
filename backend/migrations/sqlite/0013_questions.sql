-- Runs that only carry a question that no flow asks: no list of runs shows them.
ALTER TABLE runs ADD COLUMN carries_question INTEGER NOT NULL DEFAULT 0;
DROP INDEX runs_created;
DROP INDEX runs_status;
CREATE INDEX runs_created ON runs (created_at, id) WHERE carries_question = 0;
CREATE INDEX runs_status ON runs (status, created_at, id) WHERE carries_question = 0;
