-- The views for other programs and the trigger of enqueue, which docs/sql.md describes. They contain the task options, so a step that adds an
-- option drops and creates them again. It must then grant the privileges on the views again.

-- tasks_view shows tasks with the keys of docs/json.md. Times are texts in UTC, durations are in seconds.
CREATE VIEW tasks_view AS
SELECT t.id, t.job, t.args, t.label, t.queue, t.state, t.outcome ->> 'reason' AS reason, t.priority, t.lane, t.unique_key,
  CASE WHEN t.job <> 'command' AND NOT starts_with(t.unique_key, t.job || '#') THEN 1 ELSE 0 END AS unique_global,
  (SELECT CAST('[' || coalesce(string_agg(on_id::text, ',' ORDER BY on_id), '') || ']' AS json) FROM dependencies WHERE task_id = t.id AND open = 1 AND any_outcome = 0) AS after,
  (SELECT CAST('[' || coalesce(string_agg(on_id::text, ',' ORDER BY on_id), '') || ']' AS json) FROM dependencies WHERE task_id = t.id AND open = 1 AND any_outcome = 1) AS after_any,
  t.schedule, t.batch, utc(t.run_at) AS run_at, utc(t.expires_at) AS expires_at, t.attempt, t.max_attempts, t.losses, t.max_losses,
  seconds(whole(t.options ->> 'unique_for')) AS unique_for,
  t.options ->> 'unique_states' AS unique_states,
  seconds(whole(t.options ->> 'timeout')) AS timeout,
  seconds(coalesce(whole(t.options ->> 'kill_after'), 10000)) AS kill_after,
  coalesce(t.options ->> 'backoff', 'exponential') AS backoff,
  seconds(coalesce(whole(t.options ->> 'backoff_delay'), 10000)) AS backoff_delay,
  seconds(coalesce(whole(t.options ->> 'backoff_max'), 3600000)) AS backoff_max,
  t.options ->> 'retry_on' AS retry_on,
  coalesce(whole(t.options ->> 'output_limit'), 1048576) AS output_limit,
  seconds(whole(t.options ->> 'keep_for')) AS keep_for,
  coalesce(CASE WHEN t.options ->> 'leave_children' = 'true' THEN 1 ELSE 0 END, 0) AS leave_children,
  t.options ->> 'path' AS path,
  t.options ->> 'cwd' AS cwd,
  t.options -> 'env' AS env,
  t.options ->> 'env_file' AS env_file,
  t.options ->> 'user' AS user,
  coalesce(whole(t.options ->> 'nice'), 0) AS nice,
  t.options ->> 'ionice' AS ionice,
  whole(t.options ->> 'memory') AS memory,
  t.options ->> 'cpu' AS cpu,
  t.options -> 'metadata' AS metadata,
  t.options ->> 'on_failure' AS on_failure,
  t.options ->> 'on_success' AS on_success,
  t.options ->> 'on_recovery' AS on_recovery,
  t.options ->> 'on_output' AS on_output,
  t.options ->> 'event' AS event,
  CASE WHEN t.parts & 1 = 1 THEN coalesce((SELECT octet_length(data) FROM inputs WHERE task_id = t.id), -1) ELSE 0 END AS input_bytes,
  t.generation_id, w.id AS worker_id, w.name AS worker, utc(nullif(t.lease_expires_at, 0)) AS lease_expires_at, utc(c.requested_at) AS cancel_requested_at,
  CASE WHEN t.waits = 1 THEN (SELECT utc(paused_at) FROM task_pauses WHERE task_id = t.id) END AS paused_at,
  CASE WHEN t.waits = 1 THEN (SELECT paused_by FROM task_pauses WHERE task_id = t.id) END AS paused_by,
  CASE WHEN t.waits = 1 THEN (SELECT reason FROM task_pauses WHERE task_id = t.id) END AS paused_reason,
  utc(t.created_at) AS created_at, t.created_by, utc(t.updated_at) AS updated_at, utc(t.started_at) AS started_at, utc(t.finished_at) AS finished_at,
  CASE WHEN t.state <> 'running' THEN seconds(coalesce(whole(t.outcome ->> 'duration'), t.finished_at - t.started_at)) END AS duration, t.result,
  t.outcome ->> 'error' AS error, t.outcome ->> 'error_line' AS error_line, whole(t.outcome ->> 'exit_code') AS exit_code, whole(t.outcome ->> 'signal') AS signal,
  coalesce(whole(t.outcome ->> 'output_bytes'), 0) AS output_bytes,
  CASE WHEN t.outcome ->> 'output_truncated' = 'true' THEN 1 ELSE 0 END AS output_truncated,
  coalesce(whole(t.outcome ->> 'children_killed'), 0) AS children_killed, coalesce(whole(t.outcome ->> 'children_left'), 0) AS children_left,
  seconds(whole(t.outcome -> 'usage' ->> 0)) AS user_time, seconds(whole(t.outcome -> 'usage' ->> 1)) AS system_time,
  whole(t.outcome -> 'usage' ->> 2) AS max_rss, whole(t.outcome -> 'usage' ->> 3) AS read_bytes, whole(t.outcome -> 'usage' ->> 4) AS written_bytes,
  p.report AS progress
FROM tasks AS t LEFT JOIN workers AS w ON w.number = t.worker
  LEFT JOIN cancel_requests AS c ON c.task_id = t.id AND c.generation_id BETWEEN t.generation_id - 2 AND t.generation_id
    AND (t.state = 'running' OR t.finished_at IS NOT NULL)
  LEFT JOIN progress_reports AS p ON p.task_id = t.id AND p.generation_id >= t.generation_id - 1;

-- attempts_view shows ended attempts. A running attempt is in tasks_view.
CREATE VIEW attempts_view AS
SELECT a.task_id, a.generation_id, a.attempt, a.state, a.outcome ->> 'reason' AS reason, a.counted, w.id AS worker_id, w.name AS worker,
  utc(a.started_at) AS started_at, utc(a.finished_at) AS finished_at,
  seconds(coalesce(whole(a.outcome ->> 'duration'), CAST(a.finished_at AS numeric) - a.started_at)) AS duration, whole(a.outcome ->> 'exit_code') AS exit_code,
  whole(a.outcome ->> 'signal') AS signal, a.outcome ->> 'error' AS error, a.outcome ->> 'error_line' AS error_line,
  coalesce(whole(a.outcome ->> 'output_bytes'), 0) AS output_bytes,
  CASE WHEN a.outcome ->> 'output_truncated' = 'true' THEN 1 ELSE 0 END AS output_truncated,
  coalesce(whole(a.outcome ->> 'children_killed'), 0) AS children_killed, coalesce(whole(a.outcome ->> 'children_left'), 0) AS children_left,
  seconds(whole(a.outcome -> 'usage' ->> 0)) AS user_time, seconds(whole(a.outcome -> 'usage' ->> 1)) AS system_time,
  whole(a.outcome -> 'usage' ->> 2) AS max_rss, whole(a.outcome -> 'usage' ->> 3) AS read_bytes, whole(a.outcome -> 'usage' ->> 4) AS written_bytes
FROM (SELECT task_id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome FROM attempts
  UNION ALL SELECT id, generation_id - 1, attempt, state, 1, worker, started_at, finished_at, outcome FROM tasks
  WHERE state = 'completed' AND worker IS NOT NULL AND started_at IS NOT NULL) AS a LEFT JOIN workers AS w ON w.number = a.worker;

CREATE VIEW schedules_view AS
SELECT s.name, s.cron, s.zone, s.overlap, s.catch_up, seconds(s.catch_up_window) AS catch_up_window, seconds(s.jitter) AS jitter, seconds(s.alert_after) AS alert_after,
  coalesce((s.task::json ->> 'on_tick') = 'true', false) AS on_tick, s.paused_at IS NOT NULL AS paused, utc(s.paused_at) AS paused_at, s.paused_by, utc(s.next_at) AS next_at, utc(s.last_at) AS last_at,
  s.last_task_id, coalesce(t.state, s.kept_state) AS last_state,
  seconds(CASE WHEN t.id IS NULL THEN s.kept_duration ELSE coalesce(whole(t.outcome ->> 'duration'), t.finished_at - t.started_at) END) AS last_duration,
  utc(CASE WHEN s.alert_after IS NOT NULL THEN greatest(s.kept_success, (SELECT max(finished_at) FROM tasks
    WHERE schedule = s.name AND state = 'completed')) END) AS last_success,
  s.skipped, s.task, utc(s.created_at) AS created_at, utc(s.updated_at) AS updated_at
FROM schedules AS s LEFT JOIN tasks AS t ON t.id = s.last_task_id;

-- enqueue is the view through which plain SQL adds tasks. It is always empty. An INSERT into it makes the checks of package jobs and adds a
-- task. RETURNING id returns the id that the database assigns. It returns no row if another task holds the unique key.
CREATE VIEW enqueue AS
SELECT NULL::text AS job, NULL::text AS args, NULL::text AS label, NULL::text AS queue, NULL::bigint AS priority, NULL::text AS lane, NULL::text AS unique_key,
  NULL::text AS after, NULL::text AS after_any, NULL::bigint AS run_at, NULL::bigint AS expires_at, NULL::bigint AS max_attempts, NULL::bigint AS max_losses,
  NULL::bigint AS unique_for, NULL::text AS unique_states, NULL::bigint AS timeout, NULL::bigint AS kill_after, NULL::text AS backoff,
  NULL::bigint AS backoff_delay, NULL::bigint AS backoff_max, NULL::text AS retry_on, NULL::bigint AS output_limit,
  NULL::bigint AS keep_for, NULL::bigint AS leave_children, NULL::text AS cwd, NULL::text AS env, NULL::text AS env_file, NULL::text AS user, NULL::bigint AS nice,
  NULL::text AS ionice, NULL::bigint AS memory, NULL::text AS cpu, NULL::text AS metadata, NULL::text AS on_failure,
  NULL::text AS on_success, NULL::text AS on_recovery, NULL::text AS on_output, NULL::bytea AS input,
  NULL::text AS created_by, NULL::bigint AS id
WHERE false;

-- enqueue_insert adds a task. A task with a lane or dependencies stays scheduled until a worker promotes it. A task with dependencies has
-- generation 0 until then. enqueue_insert adds no task if another task holds the unique key, which is JOB#KEY for a
-- function (see keyPrefix in package taskspec). It checks rows of unique_keys after its own
-- INSERT, because the index tasks_unique then makes concurrent calls with the same key wait for this one. It need not check texts for a NUL,
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
  NEW.unique_key := nullif(NEW.unique_key, '');
  IF NEW.job <> 'command' AND NOT starts_with(NEW.unique_key, NEW.job || '#') THEN NEW.unique_key := NEW.job || '#' || NEW.unique_key; END IF;
  wrong := CASE
    WHEN NEW.job !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$' OR NEW.job ~ '\n' THEN 'job: a letter or digit, then letters, digits and . _ - : /; at most 100'
    WHEN NEW.queue !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' OR NEW.queue ~ '\n' THEN 'queue: a letter or digit, then letters, digits and . _ -; at most 100'
    WHEN octet_length(NEW.args) > 1048576 OR NEW.args IS NOT NULL AND NOT is_json(NEW.args) THEN 'args: JSON of at most 1048576 bytes'
    WHEN octet_length(NEW.label) > 200 OR NEW.label ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'label: at most 200 bytes of text without control characters'
    WHEN octet_length(NEW.unique_key) > 200 OR NEW.unique_key ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'unique_key: at most 200 bytes of text without control characters, together with the job'
    WHEN octet_length(NEW.created_by) > 200 OR NEW.created_by ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'created_by: at most 200 bytes of text without control characters'
    WHEN octet_length(NEW.lane) NOT BETWEEN 1 AND 200 OR NEW.lane ~ '[\u0001-\u001f\u007f-\u009f]' THEN 'lane: 1 to 200 bytes of text without control characters'
    WHEN NEW.priority NOT BETWEEN -2147483648 AND 2147483647 THEN 'priority: -2147483648 to 2147483647'
    WHEN NEW.run_at NOT BETWEEN 0 AND 253402300799999 THEN 'run_at: milliseconds since 1970, up to the year 9999'
    WHEN NEW.expires_at NOT BETWEEN 0 AND 253402300799999 THEN 'expires_at: milliseconds since 1970, up to the year 9999'
    WHEN NEW.max_attempts NOT BETWEEN 1 AND 2147483647 THEN 'max_attempts: 1 to 2147483647'
    WHEN NEW.max_losses NOT BETWEEN 0 AND 2147483647 THEN 'max_losses: 0 to 2147483647'
    WHEN NEW.unique_for NOT BETWEEN 1 AND 315360000000 THEN 'unique_for: milliseconds, 1 to 315360000000'
    WHEN octet_length(NEW.unique_states) > 4096 THEN 'unique_states: at most 4096 bytes of text without NUL'
    WHEN NEW.timeout NOT BETWEEN 1 AND 315360000000 THEN 'timeout: milliseconds, 1 to 315360000000'
    WHEN NEW.kill_after NOT BETWEEN 0 AND 315360000000 THEN 'kill_after: milliseconds, 0 to 315360000000'
    WHEN NEW.backoff NOT IN ('fixed', 'linear', 'exponential') THEN 'backoff: one of fixed, linear, exponential'
    WHEN NEW.backoff_delay NOT BETWEEN 0 AND 315360000000 THEN 'backoff_delay: milliseconds, 0 to 315360000000'
    WHEN NEW.backoff_max NOT BETWEEN 0 AND 315360000000 THEN 'backoff_max: milliseconds, 0 to 315360000000'
    WHEN NEW.retry_on !~ '^[0-9,-]+$' OR NEW.retry_on ~ '\n' OR octet_length(NEW.retry_on) > 1000 THEN 'retry_on: exit codes, as in 75,100-111'
    WHEN NEW.output_limit NOT BETWEEN 0 AND 9007199254740992 THEN 'output_limit: bytes, 0 to 9007199254740992'
    WHEN NEW.keep_for NOT BETWEEN 1 AND 315360000000 THEN 'keep_for: milliseconds, 1 to 315360000000'
    WHEN NEW.leave_children <> 0 AND NEW.leave_children <> 1 THEN 'leave_children: 0 or 1'
    WHEN octet_length(NEW.cwd) > 4096 THEN 'cwd: at most 4096 bytes of text without NUL'
    WHEN CASE WHEN NEW.env IS NULL THEN false
      WHEN octet_length(NEW.env) > 131072 OR NEW.env !~ '^\s*\{' OR NOT is_jsonb(NEW.env) THEN true
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.env::json) AS e WHERE json_typeof(e.value) <> 'string' OR e.key = '' OR strpos(e.key, '=') > 0) END THEN 'env: a JSON object of texts, at most 131072 bytes'
    WHEN octet_length(NEW.env_file) > 4096 THEN 'env_file: at most 4096 bytes of text without NUL'
    WHEN octet_length(NEW.user) > 4096 THEN 'user: at most 4096 bytes of text without NUL'
    WHEN NEW.nice NOT BETWEEN -20 AND 19 THEN 'nice: a number, -20 to 19'
    WHEN octet_length(NEW.ionice) > 4096 THEN 'ionice: at most 4096 bytes of text without NUL'
    WHEN NEW.memory NOT BETWEEN 1048576 AND 9007199254740992 THEN 'memory: bytes, 1048576 to 9007199254740992'
    WHEN octet_length(NEW.cpu) > 4096 THEN 'cpu: at most 4096 bytes of text without NUL'
    WHEN CASE WHEN NEW.metadata IS NULL THEN false
      WHEN octet_length(NEW.metadata) > 4096 OR NEW.metadata !~ '^\s*\{' OR NOT is_jsonb(NEW.metadata) THEN true
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.metadata::json) AS e WHERE json_typeof(e.value) <> 'string' OR e.key = '' OR strpos(e.key, '=') > 0 OR e.key !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$' OR e.key ~ '\n')
        OR (SELECT count(*) FROM json_each(NEW.metadata::json)) > 32 END THEN 'metadata: a JSON object of texts, at most 4096 bytes and 32 keys; a key is a letter or digit, then letters, digits and . _ - : /'
    WHEN octet_length(NEW.on_failure) > 4096 THEN 'on_failure: at most 4096 bytes of text without NUL'
    WHEN octet_length(NEW.on_success) > 4096 THEN 'on_success: at most 4096 bytes of text without NUL'
    WHEN octet_length(NEW.on_recovery) > 4096 THEN 'on_recovery: at most 4096 bytes of text without NUL'
    WHEN octet_length(NEW.on_output) > 4096 THEN 'on_output: at most 4096 bytes of text without NUL'
    ELSE wrong END;
  IF octet_length(NEW.input) > 16777216 THEN wrong := 'input: text or BLOB, at most 16777216 bytes'; END IF;
  IF NEW.unique_key IS NULL AND (NEW.unique_for IS NOT NULL OR NEW.unique_states IS NOT NULL) THEN
    wrong := 'unique_for, unique_states: only with a unique_key';
  END IF;
  IF NEW.id IS NOT NULL THEN wrong := 'id: leave it out, the database gives it'; END IF;
  IF wrong IS NOT NULL THEN RAISE EXCEPTION '%', wrong USING ERRCODE = 'check_violation'; END IF;
  INSERT INTO tasks (generation_id, state, queue, job, args, label, priority, run_at, expires_at, max_attempts, max_losses, unique_key, lane, parts,
    created_at, created_by, updated_at, options)
  VALUES (CASE WHEN ordered THEN 0 ELSE 1 END, CASE WHEN coalesce(NEW.run_at, at) <= at AND NEW.lane IS NULL AND NOT ordered THEN 'pending' ELSE 'scheduled' END,
    coalesce(NEW.queue, 'default'), coalesce(NEW.job, 'command'), NEW.args, NEW.label, coalesce(NEW.priority, 5), coalesce(NEW.run_at, at), NEW.expires_at,
    NEW.max_attempts, coalesce(NEW.max_losses, 3), NEW.unique_key, NEW.lane,
    nullif(CASE WHEN octet_length(NEW.input) > 0 THEN 1 ELSE 0 END + CASE WHEN ordered THEN 2 ELSE 0 END, 0), at, NEW.created_by, at,
    CAST(nullif(json_strip_nulls(json_build_object(
      'unique_for', NEW.unique_for, 'unique_states', NEW.unique_states, 'timeout', NEW.timeout, 'kill_after', NEW.kill_after,
      'backoff', NEW.backoff, 'backoff_delay', NEW.backoff_delay, 'backoff_max', NEW.backoff_max, 'retry_on', NEW.retry_on,
      'output_limit', NEW.output_limit, 'keep_for', NEW.keep_for, 'leave_children', CASE NEW.leave_children WHEN 1 THEN true END, 'cwd', NEW.cwd, 'env', NEW.env::json,
      'env_file', NEW.env_file, 'user', NEW.user, 'nice', NEW.nice, 'ionice', NEW.ionice, 'memory', NEW.memory, 'cpu', NEW.cpu,
      'metadata', NEW.metadata::json, 'on_failure', NEW.on_failure, 'on_success', NEW.on_success, 'on_recovery', NEW.on_recovery,
      'on_output', NEW.on_output))::text, '{}') AS json))
  ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL DO NOTHING RETURNING id INTO NEW.id;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF EXISTS (SELECT 1 FROM unique_keys AS held LEFT JOIN tasks AS holder ON holder.id = held.task_id WHERE held.unique_key = NEW.unique_key
      AND (held.free_at > at OR held.states LIKE '%' || holder.state || '%')) THEN
    DELETE FROM tasks WHERE id = NEW.id;
    RETURN NULL;
  END IF;
  IF NEW.unique_for IS NOT NULL OR NEW.unique_states IS NOT NULL THEN
    INSERT INTO unique_keys (unique_key, task_id, free_at, states) VALUES (NEW.unique_key, NEW.id, at + coalesce(NEW.unique_for, 0), coalesce(NEW.unique_states, ''))
    ON CONFLICT (unique_key) DO UPDATE SET task_id = excluded.task_id, free_at = excluded.free_at, states = excluded.states;
  END IF;
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
