-- Times are whole microseconds since 1970; ids are the 16 bytes of a UUID; JSON is text whose key order is kept.

-- One row: what tells this database from any other.
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- A cursor of another generation is of another log.
    generation TEXT NOT NULL
) STRICT;

CREATE TABLE flows (
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    source TEXT NOT NULL,
    definition TEXT NOT NULL,
    saved_by TEXT,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (id, version)
) STRICT;

CREATE TABLE runs (
    id BLOB NOT NULL PRIMARY KEY,
    flow TEXT NOT NULL,
    status TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    format INTEGER NOT NULL,
    -- The engine's state, with references to blobs.
    state TEXT NOT NULL
) STRICT;
CREATE INDEX runs_created ON runs (created_at, id);
CREATE INDEX runs_status ON runs (status, created_at, id);

-- What is large, once for a run and digest.
CREATE TABLE blobs (
    run_id BLOB NOT NULL,
    digest BLOB NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, digest)
) STRICT;

CREATE TABLE reviews (
    id BLOB NOT NULL PRIMARY KEY,
    run_id BLOB NOT NULL,
    status TEXT NOT NULL,
    kind TEXT NOT NULL,
    severity TEXT NOT NULL,
    flow TEXT,
    requested_by TEXT NOT NULL,
    not_requester INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- Lower case; where words are looked for.
    search TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX reviews_run ON reviews (run_id);
CREATE INDEX reviews_status ON reviews (status, created_at, id);

-- For whom a review is: `role:x`, `user:x`; who has decided it: `decided:x`; who started its run: `asked:x`.
CREATE TABLE review_audience (
    review_id BLOB NOT NULL,
    subject TEXT NOT NULL,
    pending INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (review_id, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX review_audience_subject ON review_audience (subject, pending, created_at, review_id);

CREATE TABLE steps (
    position INTEGER PRIMARY KEY,
    run_id BLOB NOT NULL,
    id BLOB NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (run_id, id)
) STRICT;

CREATE TABLE tasks (
    id BLOB NOT NULL PRIMARY KEY,
    run_id BLOB NOT NULL,
    -- `call` or `timer`: a timer is never claimed in place of a call, nor kept waiting by one. `over`: its run has
    -- ended, and it is claimed no more; a worker that holds it may still say what came of it.
    lane TEXT NOT NULL,
    -- When it may be claimed: its time, or the end of its lease.
    ready_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    owner TEXT,
    format INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX tasks_ready ON tasks (lane, ready_at);

-- One row for each run in each transaction; `body` holds its events and the inputs that led to them.
CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    commit_id BLOB NOT NULL,
    at INTEGER NOT NULL,
    run_id BLOB,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX log_run ON log (run_id, seq) WHERE run_id IS NOT NULL;

-- Proof that the log is as it was: each row holds a range of it, in order, one behind the other. See docs/audit.md.
CREATE TABLE seals (
    number INTEGER NOT NULL PRIMARY KEY,
    -- The last row of the log that it holds; `xid` is 0 in SQLite.
    xid INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    -- What is signed, to the byte.
    body TEXT NOT NULL,
    signature BLOB NOT NULL,
    -- 32 bytes for each entry, in order.
    hashes BLOB NOT NULL
) STRICT;
CREATE INDEX seals_place ON seals (xid, seq);

CREATE TABLE users (
    username TEXT NOT NULL PRIMARY KEY,
    display_name TEXT,
    email TEXT,
    roles TEXT NOT NULL,
    active INTEGER NOT NULL,
    password_hash TEXT,
    created_at INTEGER NOT NULL,
    -- When they stand in for others, as a JSON array: with the deputy, so that rights come with one row.
    deputyships TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Sessions, tokens and links, by the SHA-256 of their secret.
CREATE TABLE credentials (
    digest BLOB NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    id BLOB,
    name TEXT,
    username TEXT NOT NULL REFERENCES users (username),
    roles TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX credentials_user ON credentials (username, kind);
CREATE UNIQUE INDEX credentials_id ON credentials (id) WHERE id IS NOT NULL;
CREATE INDEX credentials_expiry ON credentials (expires_at) WHERE expires_at IS NOT NULL;

-- What people allow for later calls too, by where it holds: `run:<id>`, or `flow:<version>:<id>`.
CREATE TABLE grants (
    id BLOB NOT NULL PRIMARY KEY,
    place TEXT NOT NULL,
    given_by TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX grants_place ON grants (place, expires_at);
CREATE INDEX grants_expiry ON grants (expires_at);

CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    -- Where the answer's blobs are.
    run_id BLOB,
    -- Nothing where the answer had a secret beside it, which is shown once.
    answer TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT;
CREATE INDEX idempotency_created ON idempotency (created_at);

-- How far the log has been turned into deliveries: one row, once somebody is told anything.
CREATE TABLE outbox (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    place TEXT NOT NULL
) STRICT;

-- Messages to people and programs outside.
CREATE TABLE deliveries (
    id BLOB NOT NULL PRIMARY KEY,
    -- `webhook`, `slack` or `email`, and the webhook's or the person's name.
    channel TEXT NOT NULL,
    target TEXT NOT NULL,
    event TEXT NOT NULL,
    review_id BLOB NOT NULL,
    run_id BLOB,
    -- The place in the log before the entry that it tells of.
    place TEXT NOT NULL,
    -- `waiting`, `sent`, `dropped` or `given_up`.
    status TEXT NOT NULL,
    -- When it may be claimed: its time, or the end of its lease; when it ended, once it has.
    ready_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    -- How many of the attempts failed.
    failures INTEGER NOT NULL,
    owner TEXT,
    error TEXT,
    -- What the receiver calls the message, where it can be changed later.
    receipt TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX deliveries_ready ON deliveries (status, ready_at);
CREATE INDEX deliveries_target ON deliveries (target, channel, status, ready_at);
CREATE INDEX deliveries_review ON deliveries (review_id);
CREATE INDEX deliveries_created ON deliveries (status, created_at, id);

-- What people chose to be told, as JSON; none for most.
CREATE TABLE notifications (
    username TEXT NOT NULL PRIMARY KEY REFERENCES users (username),
    slack_user_id TEXT UNIQUE,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
