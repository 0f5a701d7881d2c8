-- Operations: pauses, and counters that outlive the tasks they counted.

-- One row is one pause: while it is there no task of that queue is claimed. Read in the claim's own transaction.
CREATE TABLE pauses (
  queue     TEXT PRIMARY KEY,  -- its name; empty: the whole database, queues that come later too
  paused_at INTEGER NOT NULL,
  paused_by TEXT NOT NULL,     -- the user who asked
  reason    TEXT CHECK (reason IS NULL OR length(CAST(reason AS BLOB)) <= 8192) -- why, if they said so
) STRICT, WITHOUT ROWID;

-- Counters of a day or two ago and older, summed up by the hour and kept for a year: charts of weeks without any task left.
CREATE TABLE counter_hours (
  queue TEXT NOT NULL,
  state TEXT NOT NULL,    -- completed, failed or cancelled
  hour  INTEGER NOT NULL, -- since 1970
  n     INTEGER NOT NULL,
  PRIMARY KEY (queue, state, hour)
) STRICT, WITHOUT ROWID;
