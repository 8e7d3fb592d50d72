-- The filters of the inbox that people keep under names, as JSON.
CREATE TABLE views (
    username TEXT NOT NULL PRIMARY KEY REFERENCES users (username),
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
