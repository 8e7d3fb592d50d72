-- What statistics count of a review, as JSON: what became of it, who decided it and how long they took, its tools, agents
-- and roles, vetoes and judges. Rows of earlier versions are filled by the server when it starts; until then it is nothing.
ALTER TABLE reviews ADD COLUMN facts TEXT;
CREATE INDEX reviews_asked ON reviews (created_at, id);
DROP INDEX reviews_unfilled;
CREATE INDEX reviews_unfilled ON reviews (id) WHERE facts IS NULL;
