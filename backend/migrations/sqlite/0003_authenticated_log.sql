-- The public key whose seals are this database's. None: nobody has sealed it yet.
ALTER TABLE meta ADD COLUMN seal_key TEXT;
-- The last row of the log that may have been written without the key.
ALTER TABLE meta ADD COLUMN unauthenticated_to INTEGER;
-- The name of the key of whoever wrote the row, and an HMAC with it. See docs/audit.md.
ALTER TABLE log ADD COLUMN mac BLOB;
