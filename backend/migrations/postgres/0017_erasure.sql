-- People whose personal data were erased.
CREATE TABLE erased_users (
    -- What they are called from then on.
    pseudonym TEXT NOT NULL PRIMARY KEY,
    -- What they were called, as long as that is still looked for.
    username TEXT UNIQUE,
    at BIGINT NOT NULL
);

-- Which rows of the log hold the entries `entries.erased`: they are what counts, and this is how they are found.
CREATE TABLE erasures (
    -- From 1, without gaps.
    number BIGINT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL
);
