-- Whether what a delivery tells was part of another message, or changed one: it counts as no message of its own.
ALTER TABLE deliveries ADD COLUMN joined BIGINT NOT NULL DEFAULT 0;
UPDATE deliveries SET joined = 1, error = NULL WHERE status = 'sent' AND error = 'part of another message';
