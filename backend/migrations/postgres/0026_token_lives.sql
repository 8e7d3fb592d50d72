-- When someone last signed in with the identity provider: their tokens lapse some time later. Those who sign in there
-- already count as if they did so now.
ALTER TABLE users ADD COLUMN signed_in_at BIGINT;
UPDATE users SET signed_in_at = CAST(EXTRACT(EPOCH FROM now()) * 1000000 AS BIGINT) WHERE provider_account IS NOT NULL;

-- When the owner of a session last confirmed it with their password.
ALTER TABLE credentials ADD COLUMN confirmed_at BIGINT;

-- The subject under which a token that may only ask finds the questions of its person.
INSERT INTO review_audience (subject, created_at, review_id)
    SELECT 'question:' || requested_by, created_at, id FROM reviews WHERE flow IS NULL;
