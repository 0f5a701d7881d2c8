-- Schema 1: tasks and what belongs to them. Times are integer milliseconds since 1970 UTC, durations integer milliseconds.
-- Predicates are CASE and OR, never IN: IN of three or more builds a temp table in every statement.

-- One row is one task: run this job, with these arguments, under these rules. A row inserted by plain SQL takes the defaults:
-- it is born scheduled, with generation 0, and turns pending when it is due.
CREATE TABLE tasks (
  id                  INTEGER PRIMARY KEY AUTOINCREMENT,     -- increasing, never reused
  generation_id       INTEGER NOT NULL DEFAULT 0 CHECK (generation_id >= 0), -- compare-and-swap token: +1 with every change of state or owner
  job                 TEXT NOT NULL DEFAULT 'command' CHECK (length(job) BETWEEN 1 AND 100), -- what it runs: command, or a registered function
  args                TEXT CHECK (args IS NULL OR json_valid(args) AND length(CAST(args AS BLOB)) <= 1048576), -- JSON: an argv, or a function's input
  label               TEXT CHECK (label IS NULL OR length(CAST(label AS BLOB)) <= 200), -- shown in lists before the job
  queue               TEXT NOT NULL DEFAULT 'default' CHECK (length(queue) BETWEEN 1 AND 100), -- named stream; queues take turns
  state               TEXT NOT NULL DEFAULT 'scheduled',     -- see the CHECK at the end
  reason              TEXT,                                  -- why the last attempt, or the task, ended otherwise than well
  priority            INTEGER NOT NULL DEFAULT 5 CHECK (priority BETWEEN -2147483648 AND 2147483647), -- higher runs first
  unique_key          TEXT CHECK (unique_key IS NULL OR length(CAST(unique_key AS BLOB)) <= 200), -- at most one unfinished task has it
  run_at              INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), -- when it is due
  expires_at          INTEGER,                               -- not started by then: cancelled, reason expired
  attempt             INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0), -- attempts started that count
  max_attempts        INTEGER CHECK (max_attempts >= 1),     -- null until the first claim: the job's own default
  losses              INTEGER NOT NULL DEFAULT 0 CHECK (losses BETWEEN 0 AND max_losses + 1), -- attempts whose worker was lost
  max_losses          INTEGER NOT NULL DEFAULT 3 CHECK (max_losses >= 0), -- beyond it: failed, reason lost
  timeout             INTEGER CHECK (timeout > 0),           -- of one attempt; null: none
  kill_after          INTEGER NOT NULL DEFAULT 10000 CHECK (kill_after >= 0), -- between TERM and KILL
  backoff             TEXT NOT NULL DEFAULT 'exponential' CHECK (CASE backoff WHEN 'exponential' THEN 1 WHEN 'linear' THEN 1 WHEN 'fixed' THEN 1 ELSE 0 END), -- how the delay grows
  backoff_delay       INTEGER NOT NULL DEFAULT 10000 CHECK (backoff_delay >= 0), -- after the first attempt
  backoff_max         INTEGER NOT NULL DEFAULT 3600000 CHECK (backoff_max >= 0), -- the delay's upper limit
  retry_on            TEXT,                                  -- exit codes worth another attempt, as in 75,100-111; null: any
  output_limit        INTEGER NOT NULL DEFAULT 1048576 CHECK (output_limit >= 0), -- bytes kept of an attempt's output
  path                TEXT CHECK (path IS NULL OR length(CAST(path AS BLOB)) <= 4096), -- of the program; null: looked up by the worker
  cwd                 TEXT CHECK (cwd IS NULL OR length(CAST(cwd AS BLOB)) <= 4096), -- null: the worker's
  env                 TEXT CHECK (env IS NULL OR json_valid(env) AND length(CAST(env AS BLOB)) <= 131072), -- JSON object of texts
  env_file            TEXT CHECK (env_file IS NULL OR length(CAST(env_file AS BLOB)) <= 4096), -- NAME=VALUE lines, read at each start
  input_bytes         INTEGER NOT NULL DEFAULT 0 CHECK (input_bytes >= 0), -- size of the row in inputs; 0: none
  worker_id           TEXT,                                  -- of the current or last attempt
  lease_expires_at    INTEGER,                               -- only while running; renewed by heartbeats
  cancel_requested_at INTEGER,                               -- someone wants the running attempt stopped
  cancel_now          INTEGER NOT NULL DEFAULT 0,            -- 1: without the grace of kill_after
  cancel_text         TEXT CHECK (cancel_text IS NULL OR length(CAST(cancel_text AS BLOB)) <= 8192), -- who and why: becomes the error of the cancelled task
  created_at          INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  created_by          TEXT,                                  -- the user who enqueued it
  updated_at          INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), -- last change of state or owner
  started_at          INTEGER,                               -- of the current or last attempt, as all below
  finished_at         INTEGER,                               -- of the task: set in the three finished states only
  duration            INTEGER,
  result              TEXT CHECK (result IS NULL OR json_valid(result) AND length(CAST(result AS BLOB)) <= 1048576), -- JSON
  error               TEXT CHECK (error IS NULL OR length(CAST(error AS BLOB)) <= 8192),
  exit_code           INTEGER,
  signal              INTEGER,
  output_bytes        INTEGER NOT NULL DEFAULT 0,            -- printed by the attempt, kept or not
  output_truncated    INTEGER NOT NULL DEFAULT 0,            -- 1: some of it was not kept
  progress            TEXT CHECK (progress IS NULL OR json_valid(progress)), -- what a function reports
  -- Before the first claim max_attempts may be null, and then no attempt counts yet: no row of plain SQL may stop a claim of many. A null
  -- would pass every comparison.
  CHECK (CASE state
    WHEN 'scheduled' THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt < coalesce(max_attempts, 1)
    WHEN 'pending'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt < coalesce(max_attempts, 1)
    WHEN 'blocked'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt < coalesce(max_attempts, 1)
    WHEN 'running'   THEN lease_expires_at IS NOT NULL AND worker_id IS NOT NULL AND finished_at IS NULL AND attempt BETWEEN 1 AND coalesce(max_attempts, 0)
    WHEN 'retrying'  THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt < coalesce(max_attempts, 0)
    WHEN 'completed' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'failed'    THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'cancelled' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    ELSE 0 END)
) STRICT;

-- The claim's order within one queue and job: priority, then id (the rowid ends every index). Nothing but pending rows is in it.
CREATE INDEX tasks_pending ON tasks (queue, job, priority DESC) WHERE state = 'pending';
-- What turns pending next. queue and state are there so that counting reads the index only.
CREATE INDEX tasks_due ON tasks (run_at, queue, state) WHERE state = 'scheduled' OR state = 'retrying';
-- What runs, by worker: heartbeats, reconciling, takeover.
CREATE INDEX tasks_running ON tasks (worker_id) WHERE state = 'running';
-- What expires next if it does not start: only tasks with an expiry that have never started.
CREATE INDEX tasks_expiry ON tasks (expires_at) WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL;
-- One unfinished task per key.
CREATE UNIQUE INDEX tasks_unique ON tasks (unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL;
-- Finished tasks by time: selectors with --since, and retention.
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE finished_at IS NOT NULL;
-- Failed tasks, which are few and often asked for.
CREATE INDEX tasks_failed ON tasks (finished_at) WHERE state = 'failed';

-- What a command reads on stdin: kept aside, since up to 16 MiB in the task's row would be rewritten by every move.
CREATE TABLE inputs (
  task_id INTEGER PRIMARY KEY,
  data    BLOB NOT NULL CHECK (length(data) <= 16777216)
) STRICT;

-- Attempts that have ended; a running one is read from tasks. The key is the database's own guarantee that one claim has one outcome.
CREATE TABLE attempts (
  task_id          INTEGER NOT NULL,
  generation_id    INTEGER NOT NULL, -- of the claim
  attempt          INTEGER NOT NULL, -- a lost one and its repeat share a number
  state            TEXT NOT NULL,    -- completed, failed, cancelled or snoozed
  reason           TEXT,
  counted          INTEGER NOT NULL, -- 0: lost, given back or snoozed
  worker_id        TEXT NOT NULL,
  started_at       INTEGER NOT NULL,
  finished_at      INTEGER NOT NULL,
  duration         INTEGER NOT NULL,
  exit_code        INTEGER,
  signal           INTEGER,
  error            TEXT,
  output_bytes     INTEGER NOT NULL DEFAULT 0,
  output_truncated INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task_id, generation_id)
) STRICT, WITHOUT ROWID;

-- What attempts printed, in order: one row per piece. seq has gaps where pieces between head and tail were not kept.
CREATE TABLE output (
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

-- One row per start of a worker.
CREATE TABLE workers (
  id         TEXT PRIMARY KEY, -- random, never reused
  name       TEXT NOT NULL,    -- for people
  host       TEXT NOT NULL,
  boot_id    TEXT NOT NULL,    -- of the host's kernel; empty where there is none
  pid        INTEGER NOT NULL,
  user       TEXT NOT NULL,
  version    TEXT NOT NULL,
  slots      INTEGER NOT NULL, -- attempts at once
  queues     TEXT,             -- JSON array of {queue, max}; null: all
  jobs       TEXT NOT NULL,    -- JSON array of the jobs it can run
  state      TEXT NOT NULL,    -- ready or draining
  lease      INTEGER NOT NULL, -- length of its leases
  started_at INTEGER NOT NULL,
  beat_at    INTEGER NOT NULL, -- last heartbeat
  ended_at   INTEGER           -- null while it lives
) STRICT, WITHOUT ROWID;
-- Workers that have not said goodbye.
CREATE INDEX workers_live ON workers (beat_at) WHERE ended_at IS NULL;

-- How many tasks ended how, per minute: figures of a day without counting history.
CREATE TABLE counters (
  queue  TEXT NOT NULL,
  state  TEXT NOT NULL,    -- completed, failed or cancelled
  minute INTEGER NOT NULL, -- since 1970
  n      INTEGER NOT NULL,
  PRIMARY KEY (queue, state, minute)
) STRICT, WITHOUT ROWID;
