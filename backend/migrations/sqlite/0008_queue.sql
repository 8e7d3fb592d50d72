-- The queue: what waits, in the order of urgency, and by what filters and rights look at. Rows of earlier versions are
-- filled by the server when it starts; until then `due` is nothing.
-- The deadline; 253402300799999999 (the end of the year 9999) where there is none.
ALTER TABLE reviews ADD COLUMN due INTEGER;
-- From 0 (critical) to 3 (low).
ALTER TABLE reviews ADD COLUMN severity_rank INTEGER;
ALTER TABLE reviews ADD COLUMN irreversible INTEGER;
-- When the claim of it ends; 0 where nobody has claimed it.
ALTER TABLE reviews ADD COLUMN claimed_until INTEGER;
-- What it has in common with others that filters and rights cannot tell from it, digested; only while it is pending.
ALTER TABLE reviews ADD COLUMN class BLOB;
CREATE INDEX reviews_urgency ON reviews (due, severity_rank, created_at, id, class, claimed_until)
    WHERE status = 'pending';
CREATE INDEX reviews_class ON reviews (class, due, claimed_until, created_at) WHERE status = 'pending';
CREATE INDEX reviews_unfilled ON reviews (id) WHERE due IS NULL;
