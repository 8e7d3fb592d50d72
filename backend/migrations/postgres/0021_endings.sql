-- Failed runs that a decision or a deadline stopped are also listed by this ending: `rejected` or `timed_out`. The server
-- finds the endings of runs that failed before when it starts.
INSERT INTO runs_by_status (status, created_at, id)
    SELECT 'unsorted', created_at, id FROM runs_by_status WHERE status = 'failed';
