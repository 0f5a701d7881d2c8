-- The views for other programs and the trigger of enqueue, which docs/sql.md describes. They contain the task options, so a step that adds an
-- option drops and creates them again. A view that is dropped takes its triggers with it.

-- Tasks for other programs, with the keys of docs/json.md. Times are texts in UTC, and durations are seconds.
CREATE VIEW {tasks_view} AS
SELECT t.id, t.job, t.args, t.label, t.queue, t.state, t.outcome ->> '$.reason' AS reason, t.priority, t.lane, t.unique_key,
  t.job <> 'command' AND coalesce(substr(t.unique_key, 1, length(t.job) + 1) <> t.job || '#', 0) AS unique_global,
  (SELECT json_group_array(on_id) FROM {dependencies} WHERE task_id = t.id AND open = 1 AND any_outcome = 0) AS after,
  (SELECT json_group_array(on_id) FROM {dependencies} WHERE task_id = t.id AND open = 1 AND any_outcome = 1) AS after_any,
  t.schedule, t.batch, strftime('%Y-%m-%dT%H:%M:%fZ', t.run_at / 1000.0, 'unixepoch') AS run_at, strftime('%Y-%m-%dT%H:%M:%fZ', t.expires_at / 1000.0, 'unixepoch') AS expires_at,
  t.attempt, t.max_attempts, t.losses, t.max_losses,
  (t.options ->> '$.unique_for') / 1000.0 AS unique_for,
  t.options ->> '$.unique_states' AS unique_states,
  (t.options ->> '$.timeout') / 1000.0 AS timeout,
  (coalesce(t.options ->> '$.kill_after', 10000)) / 1000.0 AS kill_after,
  coalesce(t.options ->> '$.backoff', 'exponential') AS backoff,
  (coalesce(t.options ->> '$.backoff_delay', 10000)) / 1000.0 AS backoff_delay,
  (coalesce(t.options ->> '$.backoff_max', 3600000)) / 1000.0 AS backoff_max,
  t.options ->> '$.retry_on' AS retry_on,
  coalesce(t.options ->> '$.output_limit', 1048576) AS output_limit,
  (t.options ->> '$.keep_for') / 1000.0 AS keep_for,
  coalesce(t.options ->> '$.leave_children', 0) AS leave_children,
  t.options ->> '$.path' AS path,
  t.options ->> '$.cwd' AS cwd,
  t.options -> '$.env' AS env,
  t.options ->> '$.env_file' AS env_file,
  t.options ->> '$.user' AS user,
  coalesce(t.options ->> '$.nice', 0) AS nice,
  t.options ->> '$.ionice' AS ionice,
  t.options ->> '$.memory' AS memory,
  t.options ->> '$.cpu' AS cpu,
  t.options -> '$.metadata' AS metadata,
  t.options ->> '$.on_failure' AS on_failure,
  t.options ->> '$.on_success' AS on_success,
  t.options ->> '$.on_recovery' AS on_recovery,
  t.options ->> '$.on_output' AS on_output,
  t.options ->> '$.event' AS event,
  CASE WHEN t.parts & 1 THEN coalesce((SELECT length(data) FROM {inputs} WHERE task_id = t.id), -1) ELSE 0 END AS input_bytes,
  t.generation_id, w.id AS worker_id, w.name AS worker, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(t.lease_expires_at, 0) / 1000.0, 'unixepoch') AS lease_expires_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', c.requested_at / 1000.0, 'unixepoch') AS cancel_requested_at,
  CASE WHEN t.waits = 1 THEN (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', paused_at / 1000.0, 'unixepoch') FROM {task_pauses} WHERE task_id = t.id) END AS paused_at,
  CASE WHEN t.waits = 1 THEN (SELECT paused_by FROM {task_pauses} WHERE task_id = t.id) END AS paused_by,
  CASE WHEN t.waits = 1 THEN (SELECT reason FROM {task_pauses} WHERE task_id = t.id) END AS paused_reason, strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1000.0, 'unixepoch') AS created_at, t.created_by,
  strftime('%Y-%m-%dT%H:%M:%fZ', t.updated_at / 1000.0, 'unixepoch') AS updated_at, strftime('%Y-%m-%dT%H:%M:%fZ', t.started_at / 1000.0, 'unixepoch') AS started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', t.finished_at / 1000.0, 'unixepoch') AS finished_at,
  CASE WHEN t.state <> 'running' THEN coalesce(t.outcome ->> '$.duration', t.finished_at - t.started_at) / 1000.0 END AS duration, t.result,
  t.outcome ->> '$.error' AS error, t.outcome ->> '$.error_line' AS error_line, t.outcome ->> '$.exit_code' AS exit_code, t.outcome ->> '$.signal' AS signal,
  coalesce(t.outcome ->> '$.output_bytes', 0) AS output_bytes, coalesce(t.outcome ->> '$.output_truncated', 0) AS output_truncated,
  coalesce(t.outcome ->> '$.children_killed', 0) AS children_killed, coalesce(t.outcome ->> '$.children_left', 0) AS children_left,
  (t.outcome ->> '$.usage[0]') / 1000.0 AS user_time, (t.outcome ->> '$.usage[1]') / 1000.0 AS system_time,
  t.outcome ->> '$.usage[2]' AS max_rss, t.outcome ->> '$.usage[3]' AS read_bytes, t.outcome ->> '$.usage[4]' AS written_bytes, p.report AS progress
FROM {tasks} AS t LEFT JOIN {workers} AS w ON w.number = t.worker
  LEFT JOIN {cancel_requests} AS c ON c.task_id = t.id AND c.generation_id BETWEEN t.generation_id - 2 AND t.generation_id
    AND (t.state = 'running' OR t.finished_at IS NOT NULL)
  LEFT JOIN {progress_reports} AS p ON p.task_id = t.id AND p.generation_id >= t.generation_id - 1;

-- Attempts that have ended. A running attempt is in tasks_view.
CREATE VIEW {attempts_view} AS
SELECT a.task_id, a.generation_id, a.attempt, a.state, a.outcome ->> '$.reason' AS reason, a.counted, w.id AS worker_id, w.name AS worker,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.started_at / 1000.0, 'unixepoch') AS started_at, strftime('%Y-%m-%dT%H:%M:%fZ', a.finished_at / 1000.0, 'unixepoch') AS finished_at,
  coalesce(a.outcome ->> '$.duration', a.finished_at - a.started_at) / 1000.0 AS duration, a.outcome ->> '$.exit_code' AS exit_code,
  a.outcome ->> '$.signal' AS signal, a.outcome ->> '$.error' AS error, a.outcome ->> '$.error_line' AS error_line,
  coalesce(a.outcome ->> '$.output_bytes', 0) AS output_bytes,
  coalesce(a.outcome ->> '$.output_truncated', 0) AS output_truncated, coalesce(a.outcome ->> '$.children_killed', 0) AS children_killed,
  coalesce(a.outcome ->> '$.children_left', 0) AS children_left,
  (a.outcome ->> '$.usage[0]') / 1000.0 AS user_time, (a.outcome ->> '$.usage[1]') / 1000.0 AS system_time,
  a.outcome ->> '$.usage[2]' AS max_rss, a.outcome ->> '$.usage[3]' AS read_bytes, a.outcome ->> '$.usage[4]' AS written_bytes
FROM (SELECT task_id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome FROM {attempts}
  UNION ALL SELECT id, generation_id - 1, attempt, state, 1, worker, started_at, finished_at, outcome FROM {tasks}
  WHERE state = 'completed' AND worker IS NOT NULL AND started_at IS NOT NULL) AS a LEFT JOIN {workers} AS w ON w.number = a.worker;

-- Schedules for other programs.
CREATE VIEW {schedules_view} AS
SELECT s.name, s.cron, s.zone, s.overlap, s.catch_up, s.catch_up_window / 1000.0 AS catch_up_window, s.jitter / 1000.0 AS jitter, s.alert_after / 1000.0 AS alert_after,
  coalesce(s.task ->> '$.on_tick', 0) AS on_tick, s.paused_at IS NOT NULL AS paused, strftime('%Y-%m-%dT%H:%M:%fZ', s.paused_at / 1000.0, 'unixepoch') AS paused_at, s.paused_by,
  strftime('%Y-%m-%dT%H:%M:%fZ', s.next_at / 1000.0, 'unixepoch') AS next_at, strftime('%Y-%m-%dT%H:%M:%fZ', s.last_at / 1000.0, 'unixepoch') AS last_at,
  s.last_task_id, coalesce(t.state, s.kept_state) AS last_state,
  CASE WHEN t.id IS NULL THEN s.kept_duration ELSE coalesce(t.outcome ->> '$.duration', t.finished_at - t.started_at) END / 1000.0 AS last_duration,
  strftime('%Y-%m-%dT%H:%M:%fZ', CASE WHEN s.alert_after IS NOT NULL THEN nullif(max(coalesce(s.kept_success, 0), coalesce((SELECT max(finished_at) FROM {tasks}
    WHERE schedule = s.name AND state = 'completed'), 0)), 0) END / 1000.0, 'unixepoch') AS last_success, s.skipped, s.task,
  strftime('%Y-%m-%dT%H:%M:%fZ', s.created_at / 1000.0, 'unixepoch') AS created_at, strftime('%Y-%m-%dT%H:%M:%fZ', s.updated_at / 1000.0, 'unixepoch') AS updated_at
FROM {schedules} AS s LEFT JOIN {tasks} AS t ON t.id = s.last_task_id;

-- An INSERT into this view adds a task, after the same checks as in package jobs. The view is always empty.
CREATE VIEW {enqueue} AS
SELECT NULL AS job, NULL AS args, NULL AS label, NULL AS queue, NULL AS priority, NULL AS lane, NULL AS unique_key, NULL AS after, NULL AS after_any,
  NULL AS run_at, NULL AS expires_at, NULL AS max_attempts, NULL AS max_losses,
  NULL AS unique_for, NULL AS unique_states, NULL AS timeout, NULL AS kill_after, NULL AS backoff, NULL AS backoff_delay,
  NULL AS backoff_max, NULL AS retry_on, NULL AS output_limit, NULL AS keep_for, NULL AS leave_children, NULL AS cwd, NULL AS env, NULL AS env_file,
  NULL AS user, NULL AS nice, NULL AS ionice, NULL AS memory, NULL AS cpu, NULL AS metadata, NULL AS on_failure, NULL AS on_success,
  NULL AS on_recovery, NULL AS on_output, NULL AS input,
  NULL AS created_by
WHERE FALSE;

-- A task with a lane or with dependencies stays scheduled until a worker adopts it. Until then a task with dependencies has generation 0.
-- The trigger adds no task whose unique key another task holds. The key of a function is JOB#KEY (see keyPrefix in package taskspec). It measures texts in bytes, because length() ends at a NUL.
CREATE TRIGGER {enqueue_insert} INSTEAD OF INSERT ON {enqueue}
BEGIN
  SELECT RAISE(ABORT, 'job: a letter or digit, then letters, digits and . _ - : /; at most 100')
    WHERE typeof(NEW.job) <> 'text' AND NEW.job IS NOT NULL OR NEW.job NOT GLOB '[A-Za-z0-9]*' OR NEW.job GLOB '*[^A-Za-z0-9._:/-]*'
      OR length(CAST(NEW.job AS BLOB)) <> length(NEW.job) OR length(NEW.job) > 100;
  SELECT RAISE(ABORT, 'queue: a letter or digit, then letters, digits and . _ -; at most 100')
    WHERE typeof(NEW.queue) <> 'text' AND NEW.queue IS NOT NULL OR NEW.queue NOT GLOB '[A-Za-z0-9]*' OR NEW.queue GLOB '*[^A-Za-z0-9._-]*'
      OR length(CAST(NEW.queue AS BLOB)) <> length(NEW.queue) OR length(NEW.queue) > 100;
  SELECT RAISE(ABORT, 'args: JSON of at most 1048576 bytes')
    WHERE NEW.args IS NOT NULL AND (typeof(NEW.args) <> 'text' OR NOT json_valid(NEW.args) OR length(CAST(NEW.args AS BLOB)) > 1048576 OR instr(NEW.args, char(0)));
  SELECT RAISE(ABORT, 'label: at most 200 bytes of text without control characters')
    WHERE typeof(NEW.label) <> 'text' AND NEW.label IS NOT NULL OR length(CAST(NEW.label AS BLOB)) > 200 OR instr(NEW.label, char(0))
      OR NEW.label GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*';
  SELECT RAISE(ABORT, 'unique_key: at most 200 bytes of text without control characters, together with the job')
    WHERE typeof(NEW.unique_key) <> 'text' AND NEW.unique_key IS NOT NULL OR instr(NEW.unique_key, char(0))
      OR NEW.unique_key GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*';
  SELECT RAISE(ABORT, 'created_by: at most 200 bytes of text without control characters')
    WHERE typeof(NEW.created_by) <> 'text' AND NEW.created_by IS NOT NULL OR length(CAST(NEW.created_by AS BLOB)) > 200 OR instr(NEW.created_by, char(0))
      OR NEW.created_by GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*';
  SELECT RAISE(ABORT, 'lane: 1 to 200 bytes of text without control characters')
    WHERE NEW.lane = '' OR typeof(NEW.lane) <> 'text' AND NEW.lane IS NOT NULL OR length(CAST(NEW.lane AS BLOB)) > 200 OR instr(NEW.lane, char(0))
      OR NEW.lane GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*';
  SELECT RAISE(ABORT, 'priority: -2147483648 to 2147483647')
    WHERE NEW.priority IS NOT NULL AND (typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN -2147483648 AND 2147483647);
  SELECT RAISE(ABORT, 'run_at: milliseconds since 1970, up to the year 9999')
    WHERE NEW.run_at IS NOT NULL AND (typeof(NEW.run_at) <> 'integer' OR NEW.run_at NOT BETWEEN 0 AND 253402300799999);
  SELECT RAISE(ABORT, 'expires_at: milliseconds since 1970, up to the year 9999')
    WHERE NEW.expires_at IS NOT NULL AND (typeof(NEW.expires_at) <> 'integer' OR NEW.expires_at NOT BETWEEN 0 AND 253402300799999);
  SELECT RAISE(ABORT, 'max_attempts: 1 to 2147483647')
    WHERE NEW.max_attempts IS NOT NULL AND (typeof(NEW.max_attempts) <> 'integer' OR NEW.max_attempts NOT BETWEEN 1 AND 2147483647);
  SELECT RAISE(ABORT, 'max_losses: 0 to 2147483647')
    WHERE NEW.max_losses IS NOT NULL AND (typeof(NEW.max_losses) <> 'integer' OR NEW.max_losses NOT BETWEEN 0 AND 2147483647);
  SELECT CASE
    WHEN NEW.unique_for IS NOT NULL AND (typeof(NEW.unique_for) <> 'integer' OR NEW.unique_for NOT BETWEEN 1 AND 315360000000) THEN RAISE(ABORT, 'unique_for: milliseconds, 1 to 315360000000')
    WHEN NEW.unique_states IS NOT NULL AND (typeof(NEW.unique_states) <> 'text' OR length(CAST(NEW.unique_states AS BLOB)) > 4096 OR instr(NEW.unique_states, char(0))) THEN RAISE(ABORT, 'unique_states: at most 4096 bytes of text without NUL')
    WHEN NEW.timeout IS NOT NULL AND (typeof(NEW.timeout) <> 'integer' OR NEW.timeout NOT BETWEEN 1 AND 315360000000) THEN RAISE(ABORT, 'timeout: milliseconds, 1 to 315360000000')
    WHEN NEW.kill_after IS NOT NULL AND (typeof(NEW.kill_after) <> 'integer' OR NEW.kill_after NOT BETWEEN 0 AND 315360000000) THEN RAISE(ABORT, 'kill_after: milliseconds, 0 to 315360000000')
    WHEN NEW.backoff IS NOT NULL AND (NOT (NEW.backoff = 'fixed' OR NEW.backoff = 'linear' OR NEW.backoff = 'exponential')) THEN RAISE(ABORT, 'backoff: one of fixed, linear, exponential')
    WHEN NEW.backoff_delay IS NOT NULL AND (typeof(NEW.backoff_delay) <> 'integer' OR NEW.backoff_delay NOT BETWEEN 0 AND 315360000000) THEN RAISE(ABORT, 'backoff_delay: milliseconds, 0 to 315360000000')
    WHEN NEW.backoff_max IS NOT NULL AND (typeof(NEW.backoff_max) <> 'integer' OR NEW.backoff_max NOT BETWEEN 0 AND 315360000000) THEN RAISE(ABORT, 'backoff_max: milliseconds, 0 to 315360000000')
    WHEN NEW.retry_on IS NOT NULL AND (typeof(NEW.retry_on) <> 'text' OR NEW.retry_on = '' OR NEW.retry_on GLOB '*[^0-9,-]*' OR length(CAST(NEW.retry_on AS BLOB)) > 1000 OR instr(NEW.retry_on, char(0))) THEN RAISE(ABORT, 'retry_on: exit codes, as in 75,100-111')
    WHEN NEW.output_limit IS NOT NULL AND (typeof(NEW.output_limit) <> 'integer' OR NEW.output_limit NOT BETWEEN 0 AND 9007199254740992) THEN RAISE(ABORT, 'output_limit: bytes, 0 to 9007199254740992')
    WHEN NEW.keep_for IS NOT NULL AND (typeof(NEW.keep_for) <> 'integer' OR NEW.keep_for NOT BETWEEN 1 AND 315360000000) THEN RAISE(ABORT, 'keep_for: milliseconds, 1 to 315360000000')
    WHEN NEW.leave_children IS NOT NULL AND (NEW.leave_children <> 0 AND NEW.leave_children <> 1) THEN RAISE(ABORT, 'leave_children: 0 or 1')
    WHEN NEW.cwd IS NOT NULL AND (typeof(NEW.cwd) <> 'text' OR length(CAST(NEW.cwd AS BLOB)) > 4096 OR instr(NEW.cwd, char(0))) THEN RAISE(ABORT, 'cwd: at most 4096 bytes of text without NUL')
    WHEN NEW.env IS NOT NULL AND (CASE WHEN typeof(NEW.env) <> 'text' OR NOT json_valid(NEW.env) OR length(CAST(NEW.env AS BLOB)) > 131072 THEN 1
      WHEN json_type(NEW.env) <> 'object' THEN 1
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.env) WHERE type <> 'text' OR key = '' OR instr(key, '=') OR instr(key || value, char(0))) END) THEN RAISE(ABORT, 'env: a JSON object of texts, at most 131072 bytes')
    WHEN NEW.env_file IS NOT NULL AND (typeof(NEW.env_file) <> 'text' OR length(CAST(NEW.env_file AS BLOB)) > 4096 OR instr(NEW.env_file, char(0))) THEN RAISE(ABORT, 'env_file: at most 4096 bytes of text without NUL')
    WHEN NEW.user IS NOT NULL AND (typeof(NEW.user) <> 'text' OR length(CAST(NEW.user AS BLOB)) > 4096 OR instr(NEW.user, char(0))) THEN RAISE(ABORT, 'user: at most 4096 bytes of text without NUL')
    WHEN NEW.nice IS NOT NULL AND (typeof(NEW.nice) <> 'integer' OR NEW.nice NOT BETWEEN -20 AND 19) THEN RAISE(ABORT, 'nice: a number, -20 to 19')
    WHEN NEW.ionice IS NOT NULL AND (typeof(NEW.ionice) <> 'text' OR length(CAST(NEW.ionice AS BLOB)) > 4096 OR instr(NEW.ionice, char(0))) THEN RAISE(ABORT, 'ionice: at most 4096 bytes of text without NUL')
    WHEN NEW.memory IS NOT NULL AND (typeof(NEW.memory) <> 'integer' OR NEW.memory NOT BETWEEN 1048576 AND 9007199254740992) THEN RAISE(ABORT, 'memory: bytes, 1048576 to 9007199254740992')
    WHEN NEW.cpu IS NOT NULL AND (typeof(NEW.cpu) <> 'text' OR length(CAST(NEW.cpu AS BLOB)) > 4096 OR instr(NEW.cpu, char(0))) THEN RAISE(ABORT, 'cpu: at most 4096 bytes of text without NUL')
    WHEN NEW.metadata IS NOT NULL AND (CASE WHEN typeof(NEW.metadata) <> 'text' OR NOT json_valid(NEW.metadata) OR length(CAST(NEW.metadata AS BLOB)) > 4096 THEN 1
      WHEN json_type(NEW.metadata) <> 'object' THEN 1
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.metadata) WHERE type <> 'text' OR key = '' OR instr(key, '=') OR instr(key || value, char(0)) OR key NOT GLOB '[A-Za-z0-9]*' OR key GLOB '*[^A-Za-z0-9._:/-]*' OR length(key) > 100)
        OR (SELECT count(*) FROM json_each(NEW.metadata)) > 32 END) THEN RAISE(ABORT, 'metadata: a JSON object of texts, at most 4096 bytes and 32 keys; a key is a letter or digit, then letters, digits and . _ - : /')
    WHEN NEW.on_failure IS NOT NULL AND (typeof(NEW.on_failure) <> 'text' OR length(CAST(NEW.on_failure AS BLOB)) > 4096 OR instr(NEW.on_failure, char(0))) THEN RAISE(ABORT, 'on_failure: at most 4096 bytes of text without NUL')
    WHEN NEW.on_success IS NOT NULL AND (typeof(NEW.on_success) <> 'text' OR length(CAST(NEW.on_success AS BLOB)) > 4096 OR instr(NEW.on_success, char(0))) THEN RAISE(ABORT, 'on_success: at most 4096 bytes of text without NUL')
    WHEN NEW.on_recovery IS NOT NULL AND (typeof(NEW.on_recovery) <> 'text' OR length(CAST(NEW.on_recovery AS BLOB)) > 4096 OR instr(NEW.on_recovery, char(0))) THEN RAISE(ABORT, 'on_recovery: at most 4096 bytes of text without NUL')
    WHEN NEW.on_output IS NOT NULL AND (typeof(NEW.on_output) <> 'text' OR length(CAST(NEW.on_output AS BLOB)) > 4096 OR instr(NEW.on_output, char(0))) THEN RAISE(ABORT, 'on_output: at most 4096 bytes of text without NUL')
  END;
  SELECT RAISE(ABORT, 'input: text or BLOB, at most 16777216 bytes')
    WHERE typeof(NEW.input) = 'integer' OR typeof(NEW.input) = 'real' OR length(CAST(NEW.input AS BLOB)) > 16777216;
  SELECT RAISE(ABORT, 'unique_for, unique_states: only with a unique_key')
    WHERE coalesce(NEW.unique_key, '') = '' AND (NEW.unique_for IS NOT NULL OR NEW.unique_states IS NOT NULL);
  SELECT RAISE(ABORT, 'after, after_any: a JSON array of ids of tasks that exist')
    WHERE EXISTS (SELECT 1 FROM (SELECT NEW.after AS list UNION ALL SELECT NEW.after_any) WHERE list IS NOT NULL AND CASE
      WHEN typeof(list) <> 'text' OR NOT json_valid(list) OR length(CAST(list AS BLOB)) > 1048576 THEN 1 WHEN json_type(list) <> 'array' THEN 1
      ELSE EXISTS (SELECT 1 FROM json_each(list) WHERE type <> 'integer' OR NOT EXISTS (SELECT 1 FROM {tasks} WHERE id = value)) END);
  SELECT CASE WHEN length(CAST(key AS BLOB)) > 200 THEN RAISE(ABORT, 'unique_key: at most 200 bytes of text without control characters, together with the job')
    WHEN EXISTS (SELECT 1 FROM {tasks} WHERE unique_key = key AND finished_at IS NULL)
    OR EXISTS (SELECT 1 FROM {unique_keys} AS held LEFT JOIN {tasks} AS holder ON holder.id = held.task_id WHERE held.unique_key = key
      AND (held.free_at > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) OR held.states LIKE '%' || holder.state || '%')) THEN RAISE(IGNORE) END
  FROM (SELECT CASE WHEN coalesce(NEW.job, 'command') = 'command' OR substr(NEW.unique_key, 1, length(NEW.job) + 1) = NEW.job || '#' THEN '' ELSE NEW.job || '#' END
    || nullif(NEW.unique_key, '') AS key) WHERE key IS NOT NULL;
  INSERT INTO {tasks} (id, generation_id, state, queue, job, args, label, priority, run_at, expires_at, max_attempts, max_losses, unique_key, lane, parts,
    created_at, created_by, updated_at, options)
  SELECT (SELECT coalesce(max(id), 0) + 1 FROM (SELECT max(id) AS id FROM {tasks} WHERE id < 4503599627370496 UNION ALL SELECT max(id) FROM {last_ids})),
    NOT ordered, CASE WHEN coalesce(NEW.run_at, now) <= now AND NEW.lane IS NULL AND NOT ordered THEN 'pending' ELSE 'scheduled' END,
    coalesce(NEW.queue, 'default'), coalesce(NEW.job, 'command'), NEW.args, NEW.label, coalesce(NEW.priority, 5), coalesce(NEW.run_at, now), NEW.expires_at,
    NEW.max_attempts, coalesce(NEW.max_losses, 3),
    CASE WHEN coalesce(NEW.job, 'command') = 'command' OR substr(NEW.unique_key, 1, length(NEW.job) + 1) = NEW.job || '#' THEN '' ELSE NEW.job || '#' END
      || nullif(NEW.unique_key, ''), NEW.lane, nullif((coalesce(length(CAST(NEW.input AS BLOB)), 0) > 0) + 2 * ordered, 0),
    now, NEW.created_by, now, nullif(json_patch('{}', json_object(
      'unique_for', NEW.unique_for, 'unique_states', NEW.unique_states, 'timeout', NEW.timeout, 'kill_after', NEW.kill_after,
      'backoff', NEW.backoff, 'backoff_delay', NEW.backoff_delay, 'backoff_max', NEW.backoff_max, 'retry_on', NEW.retry_on,
      'output_limit', NEW.output_limit, 'keep_for', NEW.keep_for, 'leave_children', json(CASE NEW.leave_children WHEN 1 THEN 'true' END), 'cwd', NEW.cwd,
      'env', json(NEW.env), 'env_file', NEW.env_file, 'user', NEW.user, 'nice', NEW.nice, 'ionice', NEW.ionice, 'memory', NEW.memory,
      'cpu', NEW.cpu, 'metadata', json(NEW.metadata), 'on_failure', NEW.on_failure, 'on_success', NEW.on_success,
      'on_recovery', NEW.on_recovery, 'on_output', NEW.on_output)), '{}')
  FROM (SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now,
    coalesce(json_array_length(NEW.after), 0) + coalesce(json_array_length(NEW.after_any), 0) > 0 AS ordered);
  INSERT OR REPLACE INTO {unique_keys} (unique_key, task_id, free_at, states)
    SELECT unique_key, id, created_at + coalesce(NEW.unique_for, 0), coalesce(NEW.unique_states, '') FROM {tasks}
    WHERE id = last_insert_rowid() AND (NEW.unique_for IS NOT NULL OR NEW.unique_states IS NOT NULL);
  INSERT INTO {inputs} (task_id, data) SELECT last_insert_rowid(), CAST(NEW.input AS BLOB) WHERE length(CAST(NEW.input AS BLOB)) > 0;
  INSERT OR IGNORE INTO {dependencies} (task_id, on_id, any_outcome, open)
    SELECT id, value, any_outcome, 1
    FROM (SELECT id FROM {tasks} WHERE id < 4503599627370496 AND generation_id = 0 AND parts >= 2 ORDER BY id DESC LIMIT 1) CROSS JOIN
      (SELECT value, 0 AS any_outcome FROM json_each(coalesce(NEW.after, '[]')) UNION ALL SELECT value, 1 FROM json_each(coalesce(NEW.after_any, '[]')))
    WHERE NOT EXISTS (SELECT 1 FROM {dependencies} WHERE task_id = id);
END;
