-- The tables and views of version 3 for PostgreSQL, with the task options of that version, and some rows.
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
CREATE INDEX tasks_lost ON tasks (queue, job, priority DESC, id) WHERE losses >= 1 AND finished_at IS NULL;
CREATE UNIQUE INDEX tasks_tick ON tasks (schedule, tick) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX tasks_lane ON tasks (lane) WHERE lane IS NOT NULL AND (state = 'pending' OR state = 'running' OR state = 'retrying');
CREATE INDEX tasks_blocked ON tasks (lane, waits, priority DESC, id, queue) WHERE waits IS NOT NULL;

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
  kind       TEXT COLLATE "C" NOT NULL CHECK (kind = 'queue' OR kind = 'job' OR kind = 'lane'),
  name       TEXT COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 200),
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
  reason    TEXT CHECK (octet_length(reason) <= 8192)
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

CREATE TABLE counters (
  queue  TEXT COLLATE "C" NOT NULL,
  state  TEXT COLLATE "C" NOT NULL,
  minute BIGINT NOT NULL,
  n      INTEGER NOT NULL, -- not bigint, because a sum of bigint is numeric
  PRIMARY KEY (queue, state, minute)
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
  CHECK (paused_at IS NULL OR next_at IS NULL)
);
CREATE INDEX schedules_next ON schedules (next_at) WHERE next_at IS NOT NULL;

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

-- schedules_keep copies the end of the last task of a schedule to the schedule before the task is deleted.
CREATE FUNCTION schedules_keep() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  UPDATE schedules SET kept_state = OLD.state, kept_duration = coalesce(whole(OLD.outcome ->> 'duration'), OLD.finished_at - OLD.started_at)
  WHERE name = OLD.schedule AND last_task_id = OLD.id;
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

-- The other functions are for the views, which the last migration creates.

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

-- tasks_view shows tasks with the keys of docs/json.md. Times are texts in UTC, durations are in seconds.
CREATE VIEW tasks_view AS
SELECT t.id, t.job, t.args, t.label, t.queue, t.state, t.outcome ->> 'reason' AS reason, t.priority, t.lane, t.unique_key,
  (SELECT CAST('[' || coalesce(string_agg(on_id::text, ',' ORDER BY on_id), '') || ']' AS json) FROM dependencies WHERE task_id = t.id AND open = 1 AND any_outcome = 0) AS after,
  (SELECT CAST('[' || coalesce(string_agg(on_id::text, ',' ORDER BY on_id), '') || ']' AS json) FROM dependencies WHERE task_id = t.id AND open = 1 AND any_outcome = 1) AS after_any,
  t.schedule, utc(t.run_at) AS run_at, utc(t.expires_at) AS expires_at, t.attempt, t.max_attempts, t.losses, t.max_losses,
  seconds(whole(t.options ->> 'timeout')) AS timeout,
  seconds(coalesce(whole(t.options ->> 'kill_after'), 10000)) AS kill_after,
  coalesce(t.options ->> 'backoff', 'exponential') AS backoff,
  seconds(coalesce(whole(t.options ->> 'backoff_delay'), 10000)) AS backoff_delay,
  seconds(coalesce(whole(t.options ->> 'backoff_max'), 3600000)) AS backoff_max,
  t.options ->> 'retry_on' AS retry_on,
  coalesce(whole(t.options ->> 'output_limit'), 1048576) AS output_limit,
  t.options ->> 'path' AS path,
  t.options ->> 'cwd' AS cwd,
  t.options -> 'env' AS env,
  t.options ->> 'env_file' AS env_file,
  CASE WHEN t.parts & 1 = 1 THEN (SELECT octet_length(data) FROM inputs WHERE task_id = t.id) ELSE 0 END AS input_bytes,
  t.generation_id, w.id AS worker_id, w.name AS worker, utc(nullif(t.lease_expires_at, 0)) AS lease_expires_at, utc(c.requested_at) AS cancel_requested_at,
  utc(t.created_at) AS created_at, t.created_by, utc(t.updated_at) AS updated_at, utc(t.started_at) AS started_at, utc(t.finished_at) AS finished_at,
  CASE WHEN t.state <> 'running' THEN seconds(coalesce(whole(t.outcome ->> 'duration'), t.finished_at - t.started_at)) END AS duration, t.result,
  t.outcome ->> 'error' AS error, whole(t.outcome ->> 'exit_code') AS exit_code, whole(t.outcome ->> 'signal') AS signal,
  coalesce(whole(t.outcome ->> 'output_bytes'), 0) AS output_bytes,
  CASE WHEN t.outcome ->> 'output_truncated' = 'true' THEN 1 ELSE 0 END AS output_truncated, p.report AS progress
FROM tasks AS t LEFT JOIN workers AS w ON w.number = t.worker
  LEFT JOIN cancel_requests AS c ON c.task_id = t.id AND c.generation_id >= t.generation_id - 2 AND (t.state = 'running' OR t.finished_at IS NOT NULL)
  LEFT JOIN progress_reports AS p ON p.task_id = t.id AND p.generation_id >= t.generation_id - 1;

-- attempts_view shows ended attempts. A running attempt is in tasks_view.
CREATE VIEW attempts_view AS
SELECT a.task_id, a.generation_id, a.attempt, a.state, a.outcome ->> 'reason' AS reason, a.counted, w.id AS worker_id, w.name AS worker,
  utc(a.started_at) AS started_at, utc(a.finished_at) AS finished_at,
  seconds(coalesce(whole(a.outcome ->> 'duration'), CAST(a.finished_at AS numeric) - a.started_at)) AS duration, whole(a.outcome ->> 'exit_code') AS exit_code,
  whole(a.outcome ->> 'signal') AS signal, a.outcome ->> 'error' AS error, coalesce(whole(a.outcome ->> 'output_bytes'), 0) AS output_bytes,
  CASE WHEN a.outcome ->> 'output_truncated' = 'true' THEN 1 ELSE 0 END AS output_truncated
FROM (SELECT task_id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome FROM attempts
  UNION ALL SELECT id, generation_id - 1, attempt, state, 1, worker, started_at, finished_at, outcome FROM tasks
  WHERE state = 'completed' AND worker IS NOT NULL AND started_at IS NOT NULL) AS a LEFT JOIN workers AS w ON w.number = a.worker;

CREATE VIEW schedules_view AS
SELECT s.name, s.cron, s.zone, s.overlap, s.catch_up, seconds(s.catch_up_window) AS catch_up_window, seconds(s.jitter) AS jitter,
  s.paused_at IS NOT NULL AS paused, utc(s.paused_at) AS paused_at, s.paused_by, utc(s.next_at) AS next_at, utc(s.last_at) AS last_at,
  s.last_task_id, coalesce(t.state, s.kept_state) AS last_state,
  seconds(CASE WHEN t.id IS NULL THEN s.kept_duration ELSE coalesce(whole(t.outcome ->> 'duration'), t.finished_at - t.started_at) END) AS last_duration,
  s.skipped, s.task, utc(s.created_at) AS created_at, utc(s.updated_at) AS updated_at
FROM schedules AS s LEFT JOIN tasks AS t ON t.id = s.last_task_id;

-- enqueue is the view through which plain SQL adds tasks. It is always empty. An INSERT into it makes the checks of package jobs and adds a
-- task. RETURNING id returns the id that the database assigns. It returns no row if an unfinished task has the same unique key.
CREATE VIEW enqueue AS
SELECT NULL::text AS job, NULL::text AS args, NULL::text AS label, NULL::text AS queue, NULL::bigint AS priority, NULL::text AS lane, NULL::text AS unique_key,
  NULL::text AS after, NULL::text AS after_any, NULL::bigint AS run_at, NULL::bigint AS expires_at, NULL::bigint AS max_attempts, NULL::bigint AS max_losses,
  NULL::bigint AS timeout, NULL::bigint AS kill_after, NULL::text AS backoff, NULL::bigint AS backoff_delay, NULL::bigint AS backoff_max, NULL::text AS retry_on, NULL::bigint AS output_limit, NULL::text AS cwd, NULL::text AS env, NULL::text AS env_file, NULL::bytea AS input,
  NULL::text AS created_by, NULL::bigint AS id
WHERE false;

-- enqueue_insert adds a task. A task with a lane or dependencies stays scheduled until a worker promotes it. A task with dependencies has
-- generation 0 until then. enqueue_insert adds no task if an unfinished task has the same unique key. It need not check texts for a NUL,
-- because a text of PostgreSQL cannot contain one.
CREATE FUNCTION enqueue_insert() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  at CONSTANT BIGINT := floor(extract(epoch FROM statement_timestamp()) * 1000);
  list TEXT;
  wrong TEXT;
  ordered BOOLEAN := false;
BEGIN
  FOREACH list IN ARRAY ARRAY[NEW.after, NEW.after_any] LOOP
    CONTINUE WHEN list IS NULL;
    IF (CASE WHEN octet_length(list) > 1048576 OR list !~ '^\s*\[' OR NOT is_json(list) THEN true
        ELSE EXISTS (SELECT 1 FROM json_array_elements(list::json) AS e (value) WHERE CASE WHEN value::text !~ '^[0-9]{1,18}$' THEN true
          ELSE NOT EXISTS (SELECT 1 FROM tasks WHERE id = value::text::bigint) END) END) THEN
      wrong := 'after, after_any: a JSON array of ids of tasks that exist';
    ELSE
      ordered := ordered OR json_array_length(list::json) > 0;
    END IF;
  END LOOP;
  wrong := CASE
    WHEN NEW.job !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$' OR NEW.job ~ '\n' THEN 'job: a letter or digit, then letters, digits and . _ - : /; at most 100'
    WHEN NEW.queue !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' OR NEW.queue ~ '\n' THEN 'queue: a letter or digit, then letters, digits and . _ -; at most 100'
    WHEN octet_length(NEW.args) > 1048576 OR NEW.args IS NOT NULL AND NOT is_json(NEW.args) THEN 'args: JSON of at most 1048576 bytes'
    WHEN octet_length(NEW.label) > 200 OR NEW.label ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'label: at most 200 bytes of text without control characters'
    WHEN octet_length(NEW.unique_key) > 200 OR NEW.unique_key ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'unique_key: at most 200 bytes of text without control characters'
    WHEN octet_length(NEW.created_by) > 200 OR NEW.created_by ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'created_by: at most 200 bytes of text without control characters'
    WHEN octet_length(NEW.lane) NOT BETWEEN 1 AND 200 OR NEW.lane ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'lane: 1 to 200 bytes of text without control characters'
    WHEN NEW.priority NOT BETWEEN -2147483648 AND 2147483647 THEN 'priority: -2147483648 to 2147483647'
    WHEN NEW.run_at NOT BETWEEN 0 AND 253402300799999 THEN 'run_at: milliseconds since 1970, up to the year 9999'
    WHEN NEW.expires_at NOT BETWEEN 0 AND 253402300799999 THEN 'expires_at: milliseconds since 1970, up to the year 9999'
    WHEN NEW.max_attempts NOT BETWEEN 1 AND 2147483647 THEN 'max_attempts: 1 to 2147483647'
    WHEN NEW.max_losses NOT BETWEEN 0 AND 2147483647 THEN 'max_losses: 0 to 2147483647'
    WHEN NEW.timeout NOT BETWEEN 1 AND 315360000000 THEN 'timeout: milliseconds, 1 to 315360000000'
    WHEN NEW.kill_after NOT BETWEEN 0 AND 315360000000 THEN 'kill_after: milliseconds, 0 to 315360000000'
    WHEN NEW.backoff NOT IN ('fixed', 'linear', 'exponential') THEN 'backoff: one of fixed, linear, exponential'
    WHEN NEW.backoff_delay NOT BETWEEN 0 AND 315360000000 THEN 'backoff_delay: milliseconds, 0 to 315360000000'
    WHEN NEW.backoff_max NOT BETWEEN 0 AND 315360000000 THEN 'backoff_max: milliseconds, 0 to 315360000000'
    WHEN NEW.retry_on !~ '^[0-9,-]+$' OR NEW.retry_on ~ '\n' OR octet_length(NEW.retry_on) > 1000 THEN 'retry_on: exit codes, as in 75,100-111'
    WHEN NEW.output_limit NOT BETWEEN 0 AND 9007199254740992 THEN 'output_limit: bytes, 0 to 9007199254740992'
    WHEN octet_length(NEW.cwd) > 4096 THEN 'cwd: at most 4096 bytes of text without NUL'
    WHEN CASE WHEN NEW.env IS NULL THEN false
      WHEN octet_length(NEW.env) > 131072 OR NEW.env !~ '^\s*\{' OR NOT is_jsonb(NEW.env) THEN true
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.env::json) AS e WHERE json_typeof(e.value) <> 'string' OR e.key = '' OR strpos(e.key, '=') > 0) END THEN 'env: a JSON object of texts, at most 131072 bytes'
    WHEN octet_length(NEW.env_file) > 4096 THEN 'env_file: at most 4096 bytes of text without NUL'
    ELSE wrong END;
  IF octet_length(NEW.input) > 16777216 THEN wrong := 'input: text or BLOB, at most 16777216 bytes'; END IF;
  IF NEW.id IS NOT NULL THEN wrong := 'id: leave it out, the database gives it'; END IF;
  IF wrong IS NOT NULL THEN RAISE EXCEPTION '%', wrong USING ERRCODE = 'check_violation'; END IF;
  INSERT INTO tasks (generation_id, state, queue, job, args, label, priority, run_at, expires_at, max_attempts, max_losses, unique_key, lane, parts,
    created_at, created_by, updated_at, options)
  VALUES (CASE WHEN ordered THEN 0 ELSE 1 END, CASE WHEN coalesce(NEW.run_at, at) <= at AND NEW.lane IS NULL AND NOT ordered THEN 'pending' ELSE 'scheduled' END,
    coalesce(NEW.queue, 'default'), coalesce(NEW.job, 'command'), NEW.args, NEW.label, coalesce(NEW.priority, 5), coalesce(NEW.run_at, at), NEW.expires_at,
    NEW.max_attempts, coalesce(NEW.max_losses, 3), NEW.unique_key, NEW.lane,
    nullif(CASE WHEN octet_length(NEW.input) > 0 THEN 1 ELSE 0 END + CASE WHEN ordered THEN 2 ELSE 0 END, 0), at, NEW.created_by, at,
    CAST(nullif(json_strip_nulls(json_build_object('timeout', NEW.timeout, 'kill_after', NEW.kill_after, 'backoff', NEW.backoff, 'backoff_delay', NEW.backoff_delay, 'backoff_max', NEW.backoff_max, 'retry_on', NEW.retry_on, 'output_limit', NEW.output_limit, 'cwd', NEW.cwd, 'env', NEW.env::json, 'env_file', NEW.env_file))::text, '{}') AS json))
  ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL DO NOTHING RETURNING id INTO NEW.id;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF octet_length(NEW.input) > 0 THEN INSERT INTO inputs (task_id, data) VALUES (NEW.id, NEW.input); END IF;
  IF ordered THEN
    INSERT INTO dependencies (task_id, on_id, any_outcome, open) SELECT NEW.id, value::bigint, min(any_outcome), 1
    FROM (SELECT value, 0 AS any_outcome FROM json_array_elements_text(coalesce(NEW.after, '[]')::json)
      UNION ALL SELECT value, 1 FROM json_array_elements_text(coalesce(NEW.after_any, '[]')::json)) AS named GROUP BY value;
  END IF;
  PERFORM pg_notify('runner_' || TG_TABLE_SCHEMA, '');
  RETURN NEW;
END $$;
CREATE TRIGGER enqueue_insert INSTEAD OF INSERT ON enqueue FOR EACH ROW EXECUTE FUNCTION enqueue_insert();

UPDATE runner_schema SET version = 3;
INSERT INTO enqueue (args, label) VALUES ('["true"]', 'first');
INSERT INTO enqueue (args, after, input, timeout) VALUES ('["cat"]', '[1]', 'abc', 5000);
INSERT INTO limits (kind, name, running, updated_at) VALUES ('queue', 'media', 2, 1795263535805);
