-- The account at the identity provider that an erased person had, as long as it is still looked for: sign-ins that were
-- refused before it was linked to them are recorded under the name that the provider gave.
ALTER TABLE erased_users ADD COLUMN provider_account TEXT;
