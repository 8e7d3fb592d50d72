-- How many workers in a row were lost while they held a task. A task that may be what ends its workers is carried out
-- beside no other such task, and is given up after some more.
ALTER TABLE tasks ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tasks_suspect ON tasks (ready_at) WHERE lost >= 2;
