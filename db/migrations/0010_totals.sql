-- Totals that only grow: what /metrics tells of attempts, whoever is asked. Workers add to them with their heartbeats and at their end, so
-- that no finish pays for it; what a killed worker has not added yet, of the last seconds, is missing.
CREATE TABLE totals (
  queue  TEXT NOT NULL,
  job    TEXT NOT NULL,
  result TEXT NOT NULL,    -- how attempts ended: completed, or the reason
  n      INTEGER NOT NULL,
  PRIMARY KEY (queue, job, result)
) STRICT, WITHOUT ROWID;
