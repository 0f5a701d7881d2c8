-- The tables of SQLite's 0001_schema.sql for PostgreSQL, in a schema of their own. SQLite's file explains the columns.
--
-- A row has the same values on both engines, so that it can be moved: times are integer milliseconds since 1970 UTC, durations are integer
-- milliseconds, and flags are 0 or 1. Texts compare by their bytes, as in SQLite. The columns options and outcome have the type json, which
-- does not change the text. So ->> works on both engines.

CREATE TABLE runner_schema (
  one     BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
  version BIGINT NOT NULL, -- version of the schema
  -- id of this database, which stays the same if the server moves; workers of one host detect each other by it
  id      TEXT NOT NULL DEFAULT md5(random()::text || clock_timestamp()::text)
);
INSERT INTO runner_schema (version) VALUES (0);

CREATE TABLE tasks (
  id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY CHECK (id BETWEEN 1 AND 9007199254740992),
  generation_id    BIGINT NOT NULL CHECK (generation_id BETWEEN 0 AND 4503599627370496),
  state            TEXT COLLATE "C" NOT NULL,
  queue            TEXT COLLATE "C" NOT NULL,
  job              TEXT COLLATE "C" NOT NULL,
  args             TEXT,
  label            TEXT COLLATE "C",
  priority         BIGINT NOT NULL CHECK (priority BETWEEN -2147483648 AND 2147483647),
  run_at           BIGINT NOT NULL,
  expires_at       BIGINT,
  attempt          BIGINT NOT NULL DEFAULT 0,
  max_attempts     BIGINT CHECK (max_attempts BETWEEN 1 AND 2147483647),
  losses           BIGINT NOT NULL DEFAULT 0,
  max_losses       BIGINT NOT NULL CHECK (max_losses BETWEEN 0 AND 2147483647 AND losses BETWEEN 0 AND max_losses + 1),
  worker           BIGINT,
  lease_expires_at BIGINT,
  unique_key       TEXT COLLATE "C",
  lane             TEXT COLLATE "C",
  schedule         TEXT COLLATE "C",
  tick             BIGINT,
  waits            BIGINT CHECK (waits IS NULL OR state = 'blocked'),
  parts            BIGINT,
  created_at       BIGINT NOT NULL,
  created_by       TEXT,
  updated_at       BIGINT NOT NULL,
  started_at       BIGINT,
  finished_at      BIGINT,
  options          JSON CHECK (options IS NULL OR CAST(options AS jsonb) IS NOT NULL), -- ->> fails for characters that jsonb rejects
  outcome          JSON CHECK (outcome IS NULL OR CAST(outcome AS jsonb) IS NOT NULL),
  result           TEXT,
  lane_slot        BIGINT,
  batch            BIGINT,
  CHECK (CASE state
    WHEN 'scheduled' THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 1) - 1
    WHEN 'pending'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 1) - 1
    WHEN 'blocked'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 1) - 1
    WHEN 'running'   THEN lease_expires_at IS NOT NULL AND lease_expires_at BETWEEN 0 AND 253402300799999 AND worker IS NOT NULL AND finished_at IS NULL
      AND attempt BETWEEN 1 AND coalesce(max_attempts, 0)
    WHEN 'retrying'  THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 0) - 1
    WHEN 'completed' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'failed'    THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'cancelled' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    ELSE false END),
  -- On PostgreSQL a difference of larger numbers would be an error, and every statement that computes it would fail.
  CONSTRAINT "times: milliseconds since 1970, of the years 0 to 9999" CHECK (
    least(run_at, expires_at, created_at, updated_at, started_at, finished_at, tick) >= -62167219200000
    AND greatest(run_at, expires_at, created_at, updated_at, started_at, finished_at, tick) <= 253402300799999)
)
-- PostgreSQL writes a renewed lease as a new row version. With a fillfactor of 85, six of seven new versions fit into the page of the old
-- one. Then no index is written, and the log for a renewal has 146 bytes, not 389. With 100 one of six fits, with 70 all but one of 25.
-- The table is a seventh larger with 85, and a third larger with 70. Vacuum runs often, because each task leaves two dead rows.
WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- The indexes are those of SQLite. There the rowid is the last part of every index, so here the id is a column of its own. No index has a
-- column that a heartbeat changes.
CREATE INDEX tasks_pending ON tasks (queue, job, priority DESC, id) WHERE state = 'pending';
CREATE INDEX tasks_due ON tasks (run_at, queue, state) WHERE state = 'scheduled' OR state = 'retrying';
CREATE INDEX tasks_running ON tasks (worker) WHERE state = 'running';
CREATE INDEX tasks_expiry ON tasks (expires_at) WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL;
CREATE UNIQUE INDEX tasks_unique ON tasks (unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL;
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_failed ON tasks (finished_at) WHERE state = 'failed';
CREATE INDEX tasks_kept ON tasks ((finished_at + CASE WHEN options ->> 'keep_for' ~ '^[0-9]{1,18}$' THEN CAST(options ->> 'keep_for' AS bigint) END))
  WHERE finished_at IS NOT NULL AND CASE WHEN options ->> 'keep_for' ~ '^[0-9]{1,18}$' THEN CAST(options ->> 'keep_for' AS bigint) END IS NOT NULL;
CREATE INDEX tasks_lost ON tasks (queue, job, priority DESC, id) WHERE losses >= 1 AND finished_at IS NULL;
CREATE UNIQUE INDEX tasks_tick ON tasks (schedule, tick) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX tasks_lane ON tasks (lane, coalesce(lane_slot, 0)) WHERE lane IS NOT NULL AND (state = 'pending' OR state = 'running' OR state = 'retrying');
CREATE INDEX tasks_blocked ON tasks (lane, waits, priority DESC, id, queue) WHERE waits IS NOT NULL;
CREATE INDEX tasks_batch ON tasks (batch, id) WHERE batch IS NOT NULL;
-- The pending tasks that were retried, released or due. A claim that starts above a floor (db/floor.go) also reads these. The expression
-- keeps the planner from other indexes.
CREATE INDEX tasks_again ON tasks (queue, job, priority DESC, id) WHERE generation_id > 1 AND '' || state = 'pending';

CREATE TABLE inputs (
  task_id BIGINT PRIMARY KEY,
  data    BYTEA NOT NULL CHECK (octet_length(data) <= 16777216)
);

CREATE TABLE cancel_requests (
  task_id       BIGINT PRIMARY KEY,
  generation_id BIGINT NOT NULL,
  requested_at  BIGINT NOT NULL,
  now           BIGINT NOT NULL,
  text          TEXT
);

-- A new report replaces the one before it in the same page.
CREATE TABLE progress_reports (
  task_id       BIGINT PRIMARY KEY,
  generation_id BIGINT NOT NULL,
  report        TEXT NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE attempts (
  task_id       BIGINT NOT NULL,
  generation_id BIGINT NOT NULL,
  attempt       BIGINT NOT NULL,
  state         TEXT COLLATE "C" NOT NULL,
  counted       BIGINT NOT NULL,
  worker        BIGINT NOT NULL,
  started_at    BIGINT NOT NULL,
  finished_at   BIGINT NOT NULL,
  outcome       JSON CHECK (outcome IS NULL OR CAST(outcome AS jsonb) IS NOT NULL),
  PRIMARY KEY (task_id, generation_id)
);
CREATE INDEX attempts_finished ON attempts (finished_at);

CREATE TABLE output (
  task_id       BIGINT NOT NULL,
  generation_id BIGINT NOT NULL,
  seq           BIGINT NOT NULL,
  attempt       BIGINT NOT NULL,
  stream        BIGINT NOT NULL,
  at            BIGINT NOT NULL,
  data          BYTEA NOT NULL,
  dropped_bytes BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (task_id, generation_id, seq)
);

CREATE TABLE steps (
  task_id       BIGINT NOT NULL,
  seq           BIGINT NOT NULL CHECK (seq >= 1),
  generation_id BIGINT NOT NULL,
  name          TEXT NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 200),
  value         TEXT CHECK (octet_length(value) <= 1048576),
  wake_at       BIGINT,
  at            BIGINT NOT NULL,
  PRIMARY KEY (task_id, seq)
);

CREATE TABLE dependencies (
  task_id     BIGINT NOT NULL,
  on_id       BIGINT NOT NULL CHECK (on_id < task_id),
  any_outcome BIGINT NOT NULL,
  open        BIGINT NOT NULL,
  PRIMARY KEY (task_id, on_id)
);
CREATE INDEX dependencies_on ON dependencies (on_id, open, task_id, any_outcome);
CREATE INDEX dependencies_open ON dependencies (task_id) WHERE open = 1;

CREATE TABLE limits (
  kind       TEXT COLLATE "C" NOT NULL CHECK (kind = 'queue' OR kind = 'job' OR kind = 'lane' OR kind = 'all'),
  name       TEXT COLLATE "C" NOT NULL CHECK (octet_length(name) <= 200 AND (name = '') = (kind = 'all')),
  running    BIGINT CHECK (running >= 1),
  rate       BIGINT CHECK (rate >= 1),
  per        BIGINT CHECK (per >= 1),
  burst      BIGINT CHECK (burst >= 1),
  level      BIGINT NOT NULL DEFAULT 0,
  filled_at  BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (kind, name),
  CHECK ((rate IS NULL) = (per IS NULL) AND (rate IS NULL) = (burst IS NULL) AND (rate IS NOT NULL OR running IS NOT NULL))
) WITH (fillfactor = 50);
CREATE INDEX limits_due ON limits (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE pauses (
  queue     TEXT COLLATE "C" PRIMARY KEY,
  paused_at BIGINT NOT NULL,
  paused_by TEXT NOT NULL,
  reason    TEXT CHECK (octet_length(reason) <= 8192),
  until_at  BIGINT
);

-- No index has beat_at, because every heartbeat changes it.
CREATE TABLE workers (
  number        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id            TEXT COLLATE "C" NOT NULL UNIQUE,
  name          TEXT NOT NULL,
  host          TEXT NOT NULL,
  boot_id       TEXT NOT NULL,
  pid           BIGINT NOT NULL,
  "user"        TEXT NOT NULL,
  version       TEXT NOT NULL,
  slots         BIGINT NOT NULL,
  queues        TEXT,
  jobs          TEXT NOT NULL,
  state         TEXT COLLATE "C" NOT NULL,
  lease         BIGINT NOT NULL,
  started_at    BIGINT NOT NULL,
  beat_at       BIGINT NOT NULL,
  ended_at      BIGINT,
  uid           BIGINT NOT NULL DEFAULT -1,
  pid_namespace TEXT NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
CREATE INDEX workers_live ON workers (number) WHERE ended_at IS NULL;

-- Transactions that end tasks at the same time add to different rows, so that none of them waits for the commit of another one. The number
-- of the process of the session selects the row (shard).
CREATE TABLE counters (
  queue  TEXT COLLATE "C" NOT NULL,
  state  TEXT COLLATE "C" NOT NULL,
  minute BIGINT NOT NULL,
  n      INTEGER NOT NULL, -- not bigint, because a sum of bigint is numeric
  shard  INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, state, minute, shard)
) WITH (fillfactor = 50);

CREATE TABLE counter_hours (
  queue TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  hour  BIGINT NOT NULL,
  n     INTEGER NOT NULL,
  PRIMARY KEY (queue, state, hour)
);

CREATE TABLE totals (
  queue  TEXT COLLATE "C" NOT NULL,
  job    TEXT COLLATE "C" NOT NULL,
  result TEXT COLLATE "C" NOT NULL,
  n      BIGINT NOT NULL,
  PRIMARY KEY (queue, job, result)
) WITH (fillfactor = 50);

CREATE TABLE schedules (
  name            TEXT COLLATE "C" PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 100),
  cron            TEXT NOT NULL CHECK (octet_length(cron) <= 1000),
  zone            TEXT NOT NULL,
  overlap         TEXT NOT NULL CHECK (overlap = 'skip' OR overlap = 'allow' OR overlap = 'replace'),
  catch_up        TEXT NOT NULL CHECK (catch_up = 'one' OR catch_up = 'skip' OR catch_up = 'all'),
  catch_up_window BIGINT NOT NULL CHECK (catch_up_window > 0),
  jitter          BIGINT NOT NULL CHECK (jitter >= 0),
  paused_at       BIGINT,
  paused_by       TEXT,
  next_at         BIGINT,
  last_at         BIGINT,
  last_task_id    BIGINT,
  kept_state      TEXT COLLATE "C",
  kept_duration   BIGINT,
  skipped         BIGINT NOT NULL DEFAULT 0,
  created_at      BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL,
  task            TEXT NOT NULL,
  boot            TEXT,
  alert_after     BIGINT CHECK (alert_after > 0),
  alerted_at      BIGINT,
  kept_success    BIGINT,
  CHECK (paused_at IS NULL OR next_at IS NULL)
);
CREATE INDEX schedules_next ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_alert ON schedules (name) WHERE alert_after IS NOT NULL;

CREATE TABLE schedule_open (
  schedule TEXT COLLATE "C" NOT NULL REFERENCES schedules (name) ON DELETE CASCADE,
  task_id  BIGINT NOT NULL,
  PRIMARY KEY (schedule, task_id)
);

CREATE TABLE schedule_inputs (
  name TEXT COLLATE "C" PRIMARY KEY REFERENCES schedules (name) ON DELETE CASCADE,
  data BYTEA NOT NULL CHECK (octet_length(data) <= 16777216)
);

-- whole returns a value of a JSON object as an integer, or NULL if it is not one.
CREATE FUNCTION whole(value TEXT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN value ~ '^-?[0-9]{1,18}$' THEN CAST(value AS bigint) END $$;

-- schedules_keep copies the end of the last task of a schedule to the schedule before the task is deleted. It also copies the time of the last
-- success, for alerts.
CREATE FUNCTION schedules_keep() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  UPDATE schedules SET kept_state = OLD.state, kept_duration = coalesce(whole(OLD.outcome ->> 'duration'), OLD.finished_at - OLD.started_at)
  WHERE name = OLD.schedule AND last_task_id = OLD.id;
  UPDATE schedules SET kept_success = OLD.finished_at
  WHERE name = OLD.schedule AND OLD.state = 'completed' AND alert_after IS NOT NULL AND coalesce(kept_success, 0) < OLD.finished_at;
  RETURN OLD;
END $$;
CREATE TRIGGER schedules_keep BEFORE DELETE ON tasks FOR EACH ROW WHEN (OLD.schedule IS NOT NULL) EXECUTE FUNCTION schedules_keep();

-- tasks_reopened keeps the record of the attempt that completed a task when the task is reset, by retry or by hand. A claim or a completion
-- does not write one of the columns of the trigger, so it never runs the trigger.
CREATE FUNCTION tasks_reopened() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  INSERT INTO attempts (task_id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome)
  VALUES (OLD.id, OLD.generation_id - 1, OLD.attempt, 'completed', 1, OLD.worker, OLD.started_at, OLD.finished_at, OLD.outcome) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER tasks_reopened AFTER UPDATE OF run_at, losses, expires_at ON tasks FOR EACH ROW
WHEN (OLD.state = 'completed' AND NEW.state <> 'completed' AND OLD.worker IS NOT NULL AND OLD.started_at IS NOT NULL) EXECUTE FUNCTION tasks_reopened();

-- The other functions are for checks and for the views, which 0001_views.sql creates.

-- utc returns a time as text in UTC. It adds the whole seconds and the milliseconds separately, because their product with an interval is
-- computed in floating point.
CREATE FUNCTION utc(ms BIGINT) RETURNS TEXT LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN ms BETWEEN -62167219200000 AND 253402300799999 THEN
    to_char(timestamp '1970-01-01' + ms / 1000 * interval '1 second' + ms % 1000 * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END
$$;

-- seconds converts milliseconds to seconds.
CREATE FUNCTION seconds(ms NUMERIC) RETURNS DOUBLE PRECISION LANGUAGE sql IMMUTABLE AS $$ SELECT CAST(ms / 1000 AS double precision) $$;

-- is_json reports whether a text is JSON.
CREATE FUNCTION is_json(value TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
  PERFORM CAST(value AS json);
  RETURN true;
EXCEPTION WHEN data_exception THEN RETURN false;
END $$;

-- is_jsonb reports whether PostgreSQL can decode JSON: it contains no NUL and no half of a surrogate pair.
CREATE FUNCTION is_jsonb(value TEXT) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
  PERFORM CAST(value AS jsonb);
  RETURN true;
EXCEPTION WHEN data_exception THEN RETURN false;
END $$;

CREATE TABLE task_pauses (
  task_id   BIGINT PRIMARY KEY,
  paused_at BIGINT NOT NULL,
  paused_by TEXT NOT NULL,
  reason    TEXT CHECK (reason IS NULL OR octet_length(reason) <= 8192)
);

CREATE TABLE task_changes (
  task_id BIGINT NOT NULL,
  seq     BIGINT NOT NULL,
  made_at BIGINT NOT NULL,
  made_by TEXT NOT NULL,
  action  TEXT NOT NULL,
  text    TEXT,
  PRIMARY KEY (task_id, seq)
);

-- The last task of a subject failed, and its hook on_recovery runs when the next one completes.
CREATE TABLE open_failures (
  subject   TEXT PRIMARY KEY,
  failed_at BIGINT NOT NULL
);

-- Unique keys that tasks may hold after they have finished.
CREATE TABLE unique_keys (
  unique_key TEXT COLLATE "C" PRIMARY KEY,
  task_id    BIGINT NOT NULL,
  free_at    BIGINT NOT NULL,
  states     TEXT NOT NULL
);
-- The keys that only a time holds.
CREATE INDEX unique_keys_free ON unique_keys (free_at) WHERE states = '';

-- The named consumers of the list of ended tasks.
CREATE TABLE cursors (
  name             TEXT PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 200),
  seq              BIGINT NOT NULL,
  owner            TEXT,
  lease_expires_at BIGINT,
  created_at       BIGINT NOT NULL
);

-- The ends of tasks that some cursor has not delivered yet.
CREATE TABLE finished (
  seq           BIGINT PRIMARY KEY,
  task_id       BIGINT NOT NULL,
  generation_id BIGINT NOT NULL,
  job           TEXT NOT NULL,
  queue         TEXT NOT NULL,
  label         TEXT,
  schedule      TEXT,
  state         TEXT NOT NULL,
  attempt       BIGINT NOT NULL,
  outcome       JSON,
  created_at    BIGINT NOT NULL,
  started_at    BIGINT,
  finished_at   BIGINT NOT NULL
);

-- The highest seq that a row of the table above has had.
CREATE TABLE finished_seq (
  seq BIGINT NOT NULL
);
INSERT INTO finished_seq (seq) VALUES (0);
