-- Who signs in by an identity provider: its issuer, a space, and the subject by which it knows them.
ALTER TABLE users ADD COLUMN provider_account TEXT;
CREATE UNIQUE INDEX users_provider_account ON users (provider_account) WHERE provider_account IS NOT NULL;
