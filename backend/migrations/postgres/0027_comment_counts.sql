-- The number of comments on a review, as requests read it that wait for another one. It is right from the next change of
-- a review on.
ALTER TABLE reviews ADD COLUMN comments BIGINT NOT NULL DEFAULT 0;
