-- The tables of runner. Times are integer milliseconds since 1970 UTC, durations integer milliseconds, flags 0 or 1.
-- 0001_views.sql creates the views for other programs. docs/file-format.md has a diagram.
-- The predicates use CASE and OR, because IN with three or more values builds a temporary table in every statement.

-- One row is one task. SQL decides on its columns. Only the execution reads options, and only people read outcome. Values that few tasks
-- have are in other tables. A column is NULL if the task does not have the value.
CREATE TABLE {tasks} (
  id               INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 9007199254740992), -- increasing, never reused: see last_ids
  generation_id    INTEGER NOT NULL CHECK (generation_id BETWEEN 0 AND 4503599627370496), -- compare-and-swap token: +1 with every change of state or owner
  state            TEXT NOT NULL,              -- see the CHECK at the end
  queue            TEXT NOT NULL,
  job              TEXT NOT NULL,              -- what it runs: command, or a registered function
  args             TEXT,                       -- JSON: an argv, or the input of a function
  label            TEXT,                       -- for people; lists show it before the job
  priority         INTEGER NOT NULL CHECK (priority BETWEEN -2147483648 AND 2147483647), -- higher runs first
  run_at           INTEGER NOT NULL,           -- when it is due
  expires_at       INTEGER,                    -- not started by then: cancelled
  attempt          INTEGER NOT NULL DEFAULT 0, -- attempts started that count
  max_attempts     INTEGER CHECK (max_attempts BETWEEN 1 AND 2147483647), -- NULL until the first claim: the default of the job
  losses           INTEGER NOT NULL DEFAULT 0, -- attempts whose worker was lost
  max_losses       INTEGER NOT NULL CHECK (max_losses BETWEEN 0 AND 2147483647 AND losses BETWEEN 0 AND max_losses + 1), -- beyond it: failed
  worker           INTEGER,                    -- of the current or last attempt: a number of workers
  lease_expires_at INTEGER,                    -- while it runs; heartbeats renew it; 0: the claim is revoked
  unique_key       TEXT,                       -- at most one unfinished task has it
  lane             TEXT,                       -- tasks of a lane run one at a time
  schedule         TEXT,                       -- the schedule that enqueued it
  tick             INTEGER,                    -- the tick of schedule; NULL: it was run by hand
  waits            INTEGER CHECK (waits IS NULL OR state = 'blocked'), -- of a blocked task: 1 for other tasks, 0 for its lane only
  parts            INTEGER,                    -- what other tables hold of it: 1 inputs, 2 dependencies, 3 both; NULL: neither
  created_at       INTEGER NOT NULL,
  created_by       TEXT,                       -- the user who enqueued it
  updated_at       INTEGER NOT NULL,           -- last change of state or owner
  started_at       INTEGER,                    -- of the current or last attempt
  finished_at      INTEGER,                    -- of the task: set in the three finished states only
  options          TEXT CHECK (options IS NULL OR json_valid(options)), -- JSON object: jobs.Options; NULL: all defaults
  outcome          TEXT CHECK (outcome IS NULL OR json_valid(outcome)), -- JSON object: how the last attempt ended; NULL: nothing to say
  result           TEXT,                       -- JSON: what the last attempt returned
  lane_slot        INTEGER,                    -- which place of its lane it holds; NULL: the first
  batch            INTEGER,                    -- the first task of the enqueue --each or --batch that added it; NULL: it was added alone
  CHECK (CASE state
    WHEN 'scheduled' THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 1) - 1
    WHEN 'pending'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 1) - 1
    WHEN 'blocked'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 1) - 1
    WHEN 'running'   THEN lease_expires_at BETWEEN 0 AND 253402300799999 AND worker IS NOT NULL AND finished_at IS NULL AND attempt BETWEEN 1 AND coalesce(max_attempts, 0)
    WHEN 'retrying'  THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 0) - 1
    WHEN 'completed' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'failed'    THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'cancelled' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    ELSE 0 END)
) STRICT;

-- The order of a claim within one queue and job: priority, then id, because each index ends with the rowid. It has pending tasks only.
CREATE INDEX {tasks_pending} ON {tasks} (queue, job, priority DESC) WHERE state = 'pending';
-- The tasks that become pending next. queue and state are in the index so that a count reads nothing else.
CREATE INDEX {tasks_due} ON {tasks} (run_at, queue, state) WHERE state = 'scheduled' OR state = 'retrying';
-- Running tasks by worker.
CREATE INDEX {tasks_running} ON {tasks} (worker) WHERE state = 'running';
-- The tasks that expire next if they do not start.
CREATE INDEX {tasks_expiry} ON {tasks} (expires_at) WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL;
-- At most one unfinished task has a unique key.
CREATE UNIQUE INDEX {tasks_unique} ON {tasks} (unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL;
-- Finished tasks by time.
CREATE INDEX {tasks_finished} ON {tasks} (finished_at) WHERE finished_at IS NOT NULL;
-- Failed tasks by time. They are few, and users often list them.
CREATE INDEX {tasks_failed} ON {tasks} (finished_at) WHERE state = 'failed';
-- Finished tasks with a retention of their own, by the time at which they are deleted.
CREATE INDEX {tasks_kept} ON {tasks} (finished_at + CASE typeof(options ->> 'keep_for') WHEN 'integer' THEN options ->> 'keep_for' END)
  WHERE finished_at IS NOT NULL AND CASE typeof(options ->> 'keep_for') WHEN 'integer' THEN options ->> 'keep_for' END IS NOT NULL;
-- Unfinished tasks that have lost a worker. Suspects are claimed separately, in the same order.
CREATE INDEX {tasks_lost} ON {tasks} (queue, job, priority DESC) WHERE losses >= 1 AND finished_at IS NULL;
-- A tick of a schedule has one task, even if several workers see the tick. The index also lists the tasks of a schedule by tick.
CREATE UNIQUE INDEX {tasks_tick} ON {tasks} (schedule, tick) WHERE schedule IS NOT NULL;
-- One task at a time has a place of a lane: from the time it is pending until it finishes or is scheduled again.
CREATE UNIQUE INDEX {tasks_lane} ON {tasks} (lane, coalesce(lane_slot, 0)) WHERE lane IS NOT NULL AND (state = 'pending' OR state = 'running' OR state = 'retrying');
-- The next task of a lane (waits = 0): priority, then id. queue is in the index so that a count reads nothing else. The predicate does not
-- name the state, so changes of tasks that are never blocked do not touch this index.
CREATE INDEX {tasks_blocked} ON {tasks} (lane, waits, priority DESC, id, queue) WHERE waits IS NOT NULL;
-- The tasks of a batch, by id. No statement changes the column, so neither a claim nor a finish writes this index.
CREATE INDEX {tasks_batch} ON {tasks} (batch) WHERE batch IS NOT NULL;

-- Ids are never reused. AUTOINCREMENT would write one more page in each transaction. Instead, this table has one row with the highest id
-- if the task that had it is deleted.
CREATE TABLE {last_ids} (
  id INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 4503599627370495)
) STRICT;
-- This trigger stores the highest id only. It ignores ids of 2^52 and more, because there would be no next id. Only plain SQL can write
-- such ids.
CREATE TRIGGER {tasks_deleted} AFTER DELETE ON {tasks} WHEN OLD.id < 4503599627370496 AND OLD.id > (SELECT coalesce(max(id), 0) FROM {tasks} WHERE id < 4503599627370496)
BEGIN
  INSERT OR IGNORE INTO {last_ids} (id) VALUES (OLD.id);
  DELETE FROM {last_ids} WHERE id < OLD.id;
END;

-- The id of a task never changes.
CREATE TRIGGER {tasks_id_kept} BEFORE UPDATE OF id ON {tasks} WHEN NEW.id <> OLD.id
BEGIN
  SELECT RAISE(ABORT, 'id: it cannot be changed');
END;

-- The stdin of commands, up to 16 MiB. In the row of the task, each change of that row would write it again.
CREATE TABLE {inputs} (
  task_id INTEGER PRIMARY KEY,
  data    BLOB NOT NULL CHECK (length(data) <= 16777216)
) STRICT;

-- Requests to cancel a running task. A row belongs to the claim of generation_id and to the outcome of that claim. The outcome has the
-- next generation, or the second next if the claim was revoked. A row with an older generation belongs to an earlier attempt and has no
-- effect.
CREATE TABLE {cancel_requests} (
  task_id       INTEGER PRIMARY KEY,
  generation_id INTEGER NOT NULL,
  requested_at  INTEGER NOT NULL,
  now           INTEGER NOT NULL, -- 1: without the grace of kill_after
  text          TEXT              -- who and why: becomes the error of the task
) STRICT;
-- The last progress reports of running functions. A row belongs to a claim, as a row of cancel_requests does.
CREATE TABLE {progress_reports} (
  task_id       INTEGER PRIMARY KEY,
  generation_id INTEGER NOT NULL,
  report        TEXT NOT NULL     -- JSON
) STRICT;

-- Attempts that have ended. If an attempt completed its task and the task is still completed, the row of the task has all of it, so there
-- is no row here. A running attempt is in tasks. The primary key guarantees that a claim has one outcome.
CREATE TABLE {attempts} (
  task_id       INTEGER NOT NULL,
  generation_id INTEGER NOT NULL, -- of the claim
  attempt       INTEGER NOT NULL, -- a lost one and its repeat share a number
  state         TEXT NOT NULL,    -- completed, failed, cancelled or snoozed
  counted       INTEGER NOT NULL, -- 0: lost, given back or snoozed
  worker        INTEGER NOT NULL,
  started_at    INTEGER NOT NULL,
  finished_at   INTEGER NOT NULL,
  outcome       TEXT CHECK (outcome IS NULL OR json_valid(outcome)), -- as in tasks
  PRIMARY KEY (task_id, generation_id)
) STRICT, WITHOUT ROWID;
-- Ended attempts by time, for the slots of workers on the pages. An attempt that completes its task has no row, so it does not write this.
CREATE INDEX {attempts_finished} ON {attempts} (finished_at);

-- If a completed task is reset, by retry or by plain SQL, this trigger stores the attempt that completed it. The trigger watches columns
-- that neither a claim nor a completion writes. A trigger on state would take a tenth of the time of a task.
CREATE TRIGGER {tasks_reopened} AFTER UPDATE OF run_at, losses, expires_at ON {tasks}
WHEN OLD.state = 'completed' AND NEW.state <> 'completed' AND OLD.worker IS NOT NULL AND OLD.started_at IS NOT NULL
BEGIN
  INSERT OR IGNORE INTO {attempts} (task_id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome)
  VALUES (OLD.id, OLD.generation_id - 1, OLD.attempt, 'completed', 1, OLD.worker, OLD.started_at, OLD.finished_at, OLD.outcome);
END;

-- The output of attempts, in order, with a row for each piece. seq has gaps where pieces between head and tail were dropped.
CREATE TABLE {output} (
  task_id       INTEGER NOT NULL,
  generation_id INTEGER NOT NULL,           -- of the claim
  seq           INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  stream        INTEGER NOT NULL,           -- 1 stdout, 2 stderr
  at            INTEGER NOT NULL,
  data          BLOB NOT NULL,
  dropped_bytes INTEGER NOT NULL DEFAULT 0, -- printed before this piece and after the last one, and not kept
  PRIMARY KEY (task_id, generation_id, seq)
) STRICT;

-- Steps of functions that have ended, and sleeps. The function does not run them again.
CREATE TABLE {steps} (
  task_id       INTEGER NOT NULL,
  seq           INTEGER NOT NULL CHECK (seq >= 1), -- the order in which the function comes to them
  generation_id INTEGER NOT NULL,                  -- of the claim that did it
  name          TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 200),
  value         TEXT CHECK (value IS NULL OR json_valid(value) AND length(CAST(value AS BLOB)) <= 1048576), -- JSON: what it returned
  wake_at       INTEGER,                           -- of a sleep: when it ends
  at            INTEGER NOT NULL,                  -- when it ended, or when the sleep began
  PRIMARY KEY (task_id, seq)
) STRICT;

-- A row says that a task waits, or has waited, for another task. It stays until its task is deleted, because results and retry use it.
CREATE TABLE {dependencies} (
  task_id     INTEGER NOT NULL, -- waits
  on_id       INTEGER NOT NULL CHECK (on_id < task_id), -- for this older one: so there are no cycles
  any_outcome INTEGER NOT NULL, -- 1: however that ends; 0: only if it completes
  open        INTEGER NOT NULL, -- 1: it still waits
  PRIMARY KEY (task_id, on_id)
) STRICT, WITHOUT ROWID;
-- The tasks that wait for a task.
CREATE INDEX {dependencies_on} ON {dependencies} (on_id, open, task_id, any_outcome);
-- The open dependencies of a task. One seek finds them, even if many other dependencies have ended.
CREATE INDEX {dependencies_open} ON {dependencies} (task_id) WHERE open = 1;

-- Limits of a queue, a job, a lane or the whole database: how many tasks run at once, and how often they start. See admin.Limit and
-- jobs.Bucket.
CREATE TABLE {limits} (
  kind       TEXT NOT NULL CHECK (CASE kind WHEN 'queue' THEN 1 WHEN 'job' THEN 1 WHEN 'lane' THEN 1 WHEN 'all' THEN 1 ELSE 0 END),
  name       TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) <= 200 AND (name = '') = (kind = 'all')),
  running    INTEGER CHECK (running >= 1), -- at once; null: any number, of a lane one
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
-- The lane whose rate limit allows the next start first.
CREATE INDEX {limits_due} ON {limits} (due_at) WHERE due_at IS NOT NULL;

-- One row is one pause. While the row exists, no worker claims tasks of that queue.
CREATE TABLE {pauses} (
  queue     TEXT PRIMARY KEY,  -- its name; empty: the whole database, queues that come later too; -deletion: nothing is deleted
  paused_at INTEGER NOT NULL,
  paused_by TEXT NOT NULL,     -- the user who asked
  reason    TEXT CHECK (reason IS NULL OR length(CAST(reason AS BLOB)) <= 8192), -- why, if they said so
  until_at  INTEGER            -- when it ends by itself; NULL: when somebody resumes the queue
) STRICT, WITHOUT ROWID;

-- One row is one start of a worker. tasks and attempts refer to it by number.
CREATE TABLE {workers} (
  number        INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE, -- random, never reused
  name          TEXT NOT NULL,        -- for people
  host          TEXT NOT NULL,
  boot_id       TEXT NOT NULL,        -- of the host's kernel; empty where there is none
  pid           INTEGER NOT NULL,
  user          TEXT NOT NULL,
  version       TEXT NOT NULL,
  slots         INTEGER NOT NULL,     -- attempts at once
  queues        TEXT,                 -- JSON array of {queue, max}; null: all
  jobs          TEXT NOT NULL,        -- JSON array of the jobs it can run
  state         TEXT NOT NULL,        -- ready or draining
  lease         INTEGER NOT NULL,     -- length of its leases
  started_at    INTEGER NOT NULL,
  beat_at       INTEGER NOT NULL,     -- last heartbeat
  ended_at      INTEGER,              -- null while it lives
  uid           INTEGER NOT NULL DEFAULT -1,     -- whose processes others can look at and kill; -1: not known
  pid_namespace TEXT NOT NULL DEFAULT ''         -- in which pid counts, as the kernel names it; empty: not known
) STRICT;
-- Workers that have not ended, or were killed.
CREATE INDEX {workers_live} ON {workers} (beat_at) WHERE ended_at IS NULL;

-- Numbers of tasks by their end, for each minute of the last two days. They stay when the tasks are deleted.
CREATE TABLE {counters} (
  queue  TEXT NOT NULL,
  state  TEXT NOT NULL,    -- completed, failed or cancelled
  minute INTEGER NOT NULL, -- since 1970
  n      INTEGER NOT NULL,
  PRIMARY KEY (queue, state, minute)
) STRICT, WITHOUT ROWID;
-- The same per hour, for a year.
CREATE TABLE {counter_hours} (
  queue TEXT NOT NULL,
  state TEXT NOT NULL,
  hour  INTEGER NOT NULL, -- since 1970
  n     INTEGER NOT NULL,
  PRIMARY KEY (queue, state, hour)
) STRICT, WITHOUT ROWID;

-- Totals for /metrics, which only grow. Workers add to them with their heartbeats and when they end, so that a finish writes nothing here.
-- The totals lack the last seconds of a worker that was killed.
CREATE TABLE {totals} (
  queue  TEXT NOT NULL,
  job    TEXT NOT NULL,
  result TEXT NOT NULL,    -- how attempts ended: completed, or the reason
  n      INTEGER NOT NULL,
  PRIMARY KEY (queue, job, result)
) STRICT, WITHOUT ROWID;

-- One row is one schedule.
CREATE TABLE {schedules} (
  name            TEXT PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 100),
  cron            TEXT NOT NULL CHECK (length(CAST(cron AS BLOB)) <= 1000), -- five fields, @hourly and its like, or @every 90s
  zone            TEXT NOT NULL,                             -- of the IANA database
  overlap         TEXT NOT NULL CHECK (overlap = 'skip' OR overlap = 'allow' OR overlap = 'replace'), -- at a tick while an earlier task is unfinished
  catch_up        TEXT NOT NULL CHECK (catch_up = 'one' OR catch_up = 'skip' OR catch_up = 'all'), -- for ticks that nobody saw
  catch_up_window INTEGER NOT NULL CHECK (catch_up_window > 0), -- how old a tick may be that is caught up by all
  jitter          INTEGER NOT NULL CHECK (jitter >= 0),      -- tasks are due up to so much after their tick
  paused_at       INTEGER,                                   -- null: it is not paused
  paused_by       TEXT,
  next_at         INTEGER,                                   -- the first tick that nobody has dealt with; null: none, or paused
  last_at         INTEGER,                                   -- when the last task was due: its tick, or the time of a run by hand
  last_task_id    INTEGER,                                   -- it may have been deleted
  kept_state      TEXT,                                      -- of the last task, once it has been deleted
  kept_duration   INTEGER,                                   -- likewise
  skipped         INTEGER NOT NULL DEFAULT 0,                -- ticks skipped because of overlap
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,                          -- of the definition, or of the pause
  task            TEXT NOT NULL CHECK (json_valid(task)),    -- what is enqueued: a JSON object
  boot            TEXT,                                      -- of @reboot: the id of the last boot that has had its tick or needs none
  alert_after     INTEGER CHECK (alert_after > 0),           -- longest time without a completed task; NULL: no alerts
  alerted_at      INTEGER,
  kept_success    INTEGER,                                   -- the end of the last completed task that has been deleted
  CHECK (paused_at IS NULL OR next_at IS NULL)
) STRICT;
-- The schedule with the next tick.
CREATE INDEX {schedules_next} ON {schedules} (next_at) WHERE next_at IS NOT NULL;
-- The schedules with alerts.
CREATE INDEX {schedules_alert} ON {schedules} (name) WHERE alert_after IS NOT NULL;

-- The tasks of a schedule that were unfinished at the last check, for its overlap rule. An index over tasks would be always current, but
-- each finish would take 4 % longer.
CREATE TABLE {schedule_open} (
  schedule TEXT NOT NULL REFERENCES {schedules} (name) ON DELETE CASCADE,
  task_id  INTEGER NOT NULL,
  PRIMARY KEY (schedule, task_id)
) STRICT, WITHOUT ROWID;

-- The stdin of the commands of schedules, up to 16 MiB. In the row of the schedule, each tick would write it again.
CREATE TABLE {schedule_inputs} (
  name TEXT PRIMARY KEY REFERENCES {schedules} (name) ON DELETE CASCADE,
  data BLOB NOT NULL CHECK (length(data) <= 16777216)
) STRICT;

-- If the last task of a schedule is deleted, this trigger keeps how it ended. It also keeps the time of the last success, for alerts.
CREATE TRIGGER {schedules_keep} BEFORE DELETE ON {tasks} WHEN OLD.schedule IS NOT NULL BEGIN
  UPDATE {schedules} SET kept_state = OLD.state, kept_duration = coalesce(json_extract(OLD.outcome, '$.duration'), OLD.finished_at - OLD.started_at)
  WHERE name = OLD.schedule AND last_task_id = OLD.id;
  UPDATE {schedules} SET kept_success = OLD.finished_at
  WHERE name = OLD.schedule AND OLD.state = 'completed' AND alert_after IS NOT NULL AND coalesce(kept_success, 0) < OLD.finished_at;
END;

-- Paused tasks, which wait until somebody resumes them. Such a task is blocked, and its column waits is 1, as if it waited for another task.
CREATE TABLE {task_pauses} (
  task_id   INTEGER PRIMARY KEY,
  paused_at INTEGER NOT NULL,
  paused_by TEXT NOT NULL, -- the user who asked
  reason    TEXT CHECK (reason IS NULL OR length(CAST(reason AS BLOB)) <= 8192) -- why, if they said so
) STRICT;

-- What users have changed in tasks: the last changes of each task, in order.
CREATE TABLE {task_changes} (
  task_id INTEGER NOT NULL,
  seq     INTEGER NOT NULL, -- 1 for the first change
  made_at INTEGER NOT NULL,
  made_by TEXT NOT NULL,
  action  TEXT NOT NULL,    -- edit, first, pause or resume
  text    TEXT,             -- the new values, or the reason, for people
  PRIMARY KEY (task_id, seq)
) STRICT, WITHOUT ROWID;

-- The last task of a subject failed, and its hook on_recovery runs when the next one completes. A subject is a schedule or a unique key.
CREATE TABLE {open_failures} (
  subject   TEXT PRIMARY KEY, -- schedule NAME, or unique KEY
  failed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Unique keys that tasks may hold after they have finished. A task with such a key has a row, and so has a deleted task until free_at.
CREATE TABLE {unique_keys} (
  unique_key TEXT PRIMARY KEY,
  task_id    INTEGER NOT NULL,
  free_at    INTEGER NOT NULL, -- until then the task holds the key in any state
  states     TEXT NOT NULL     -- finished states in which the task holds the key, separated by commas
) STRICT, WITHOUT ROWID;
-- The keys that only a time holds.
CREATE INDEX {unique_keys_free} ON {unique_keys} (free_at) WHERE states = '';

-- Named consumers of the list of ended tasks. A consumer has delivered the ends up to seq. While it delivers the next ones, it is the owner
-- of its cursor until the lease expires.
CREATE TABLE {cursors} (
  name             TEXT PRIMARY KEY CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 200),
  seq              INTEGER NOT NULL,
  owner            TEXT,             -- random id of the consumer; NULL: none
  lease_expires_at INTEGER,
  created_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The ends of tasks that some cursor has not delivered yet, with copies of the facts that a retry or a deletion of the task would remove.
-- Without a cursor the table is empty.
CREATE TABLE {finished} (
  seq           INTEGER PRIMARY KEY, -- in the order of the commits
  task_id       INTEGER NOT NULL,
  generation_id INTEGER NOT NULL,    -- of the task after its end
  job           TEXT NOT NULL,
  queue         TEXT NOT NULL,
  label         TEXT,
  schedule      TEXT,
  state         TEXT NOT NULL,       -- completed, failed or cancelled
  attempt       INTEGER NOT NULL,
  outcome       TEXT,
  created_at    INTEGER NOT NULL,
  started_at    INTEGER,
  finished_at   INTEGER NOT NULL
) STRICT;

-- The highest seq that a row of the table above has had.
CREATE TABLE {finished_seq} (
  seq INTEGER NOT NULL
) STRICT;
INSERT INTO {finished_seq} (seq) VALUES (0);
