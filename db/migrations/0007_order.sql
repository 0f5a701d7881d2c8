-- The order of tasks: dependencies, lanes and limits.

-- Kept as written by whoever enqueued the task, for SQL readers; dependencies below is what counts.
ALTER TABLE tasks ADD COLUMN after TEXT CHECK (after IS NULL OR json_valid(after) AND length(CAST(after AS BLOB)) <= 1048576); -- JSON array of ids
ALTER TABLE tasks ADD COLUMN after_any TEXT CHECK (after_any IS NULL OR json_valid(after_any) AND length(CAST(after_any AS BLOB)) <= 1048576); -- JSON array of ids
ALTER TABLE tasks ADD COLUMN lane TEXT CHECK (lane IS NULL OR length(CAST(lane AS BLOB)) BETWEEN 1 AND 200); -- its tasks run one at a time
ALTER TABLE tasks ADD COLUMN waits INTEGER CHECK (waits IS NULL OR state = 'blocked'); -- of a blocked task: 1 for other tasks, 0 for its lane only

-- One task of a lane at a time: the one that has the lane, from pending until it finishes or is put off.
CREATE UNIQUE INDEX tasks_lane ON tasks (lane) WHERE lane IS NOT NULL AND (state = 'pending' OR state = 'running' OR state = 'retrying');
-- Who comes next in a lane (waits = 0): priority, then id. queue is there so that counting reads the index only. Its predicate
-- does not name the state, so that the moves of tasks that are never blocked do not touch it.
CREATE INDEX tasks_blocked ON tasks (lane, waits, priority DESC, id, queue) WHERE waits IS NOT NULL;

-- Who waits, or has waited, for whom. Rows are kept until their task is deleted: results go down them, and retry looks at them.
CREATE TABLE dependencies (
  task_id INTEGER NOT NULL, -- waits
  on_id   INTEGER NOT NULL CHECK (on_id < task_id), -- for this older one: so there are no cycles
  whatever INTEGER NOT NULL, -- 1: however that ends; 0: only if it completes
  open    INTEGER NOT NULL, -- 1: it still waits
  PRIMARY KEY (task_id, on_id)
) STRICT, WITHOUT ROWID;
-- Who waits for a task that ends.
CREATE INDEX dependencies_on ON dependencies (on_id, open, task_id, whatever);
-- Whether a task still waits: one seek, however many have ended.
CREATE INDEX dependencies_open ON dependencies (task_id) WHERE open = 1;

-- How many tasks of a target run at once, and how often they start. See jobs.Limit and jobs.Bucket.
CREATE TABLE limits (
  kind       TEXT NOT NULL CHECK (CASE kind WHEN 'queue' THEN 1 WHEN 'job' THEN 1 WHEN 'lane' THEN 1 ELSE 0 END),
  name       TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 200),
  running    INTEGER CHECK (running >= 1), -- at once; null: any number
  rate       INTEGER CHECK (rate >= 1),    -- starts per per; null: any number
  per        INTEGER CHECK (per >= 1),
  burst      INTEGER CHECK (burst >= 1),   -- starts at once after a quiet time
  level      INTEGER NOT NULL DEFAULT 0,   -- of the bucket at filled_at: a start takes per, each millisecond gives rate
  filled_at  INTEGER NOT NULL DEFAULT 0,
  due_at     INTEGER,                      -- of a lane: when its next task may have it; null: nothing waits for the rate
  updated_at INTEGER NOT NULL,             -- when somebody set it
  PRIMARY KEY (kind, name),
  CHECK ((rate IS NULL) = (per IS NULL) AND (rate IS NULL) = (burst IS NULL) AND (rate IS NOT NULL OR running IS NOT NULL))
) STRICT, WITHOUT ROWID;
-- Which lane's rate lets its next task start first.
CREATE INDEX limits_due ON limits (due_at) WHERE due_at IS NOT NULL;

-- A row of plain SQL names tasks that exist and are older. What it waits for is looked at when it is due.
CREATE TRIGGER tasks_after AFTER INSERT ON tasks WHEN NEW.generation_id = 0 AND (NEW.after IS NOT NULL OR NEW.after_any IS NOT NULL)
BEGIN
  SELECT RAISE(ABORT, 'after: a JSON array of ids of tasks that exist')
  FROM (SELECT after AS list FROM tasks WHERE id = NEW.id UNION ALL SELECT after_any FROM tasks WHERE id = NEW.id)
  WHERE list IS NOT NULL AND (json_type(list) <> 'array'
    OR EXISTS (SELECT 1 FROM json_each(list) WHERE type <> 'integer' OR value >= NEW.id OR NOT EXISTS (SELECT 1 FROM tasks WHERE id = value)));
END;
