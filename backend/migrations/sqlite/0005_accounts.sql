-- When a session was used last, and from where it was started, as JSON.
ALTER TABLE credentials ADD COLUMN last_used_at INTEGER;
ALTER TABLE credentials ADD COLUMN client TEXT;
-- Sessions are listed and ended by an id.
UPDATE credentials SET id = randomblob(16) WHERE kind = 'session' AND id IS NULL;
-- The second factor of a person, as JSON.
ALTER TABLE users ADD COLUMN second_factor TEXT;
