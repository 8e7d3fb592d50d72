-- What people say of how agents work: the log has it too, and this is where it is looked up.
CREATE TABLE feedback (
    id UUID NOT NULL PRIMARY KEY,
    run_id UUID NOT NULL,
    -- The flow that has the agent.
    flow TEXT NOT NULL,
    agent TEXT NOT NULL,
    type TEXT NOT NULL,
    given_by TEXT NOT NULL,
    at BIGINT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX feedback_agent ON feedback (flow, agent, at, id);
CREATE INDEX feedback_run ON feedback (run_id);
CREATE INDEX feedback_at ON feedback (at, id);
