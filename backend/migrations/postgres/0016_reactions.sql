-- What a message shows (revision and digest of its review), where a reaction to it decides.
ALTER TABLE deliveries ADD COLUMN shown TEXT;
CREATE INDEX deliveries_shown ON deliveries (receipt) WHERE shown IS NOT NULL;
