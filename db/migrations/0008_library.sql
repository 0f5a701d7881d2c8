-- Library: durable steps of functions.

-- One row is one step that has ended, or one sleep: what a function need not do again.
CREATE TABLE steps (
  task_id       INTEGER NOT NULL,
  seq           INTEGER NOT NULL CHECK (seq >= 1), -- the order in which the function comes to them
  generation_id INTEGER NOT NULL,                  -- of the claim that did it
  name          TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 200),
  value         TEXT CHECK (value IS NULL OR json_valid(value) AND length(CAST(value AS BLOB)) <= 1048576), -- JSON: what it returned
  wake_at       INTEGER,                           -- of a sleep: when it ends
  at            INTEGER NOT NULL,                  -- when it ended, or when the sleep began
  PRIMARY KEY (task_id, seq)
) STRICT;
