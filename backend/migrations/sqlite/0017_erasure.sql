-- People whose personal data were erased.
CREATE TABLE erased_users (
    -- What they are called from then on.
    pseudonym TEXT NOT NULL PRIMARY KEY,
    -- What they were called, as long as that is still looked for.
    username TEXT UNIQUE,
    at INTEGER NOT NULL
) STRICT;

-- Which rows of the log hold the entries `entries.erased`: they are what counts, and this is how they are found.
CREATE TABLE erasures (
    -- From 1, without gaps.
    number INTEGER NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT;
