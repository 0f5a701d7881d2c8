-- This file ends the conversion of schema 11. It copies the rows of the old tables to the new tables, and drops the old tables. It does not
-- store an option that has its default value, because json_patch removes the keys whose value is null.

INSERT INTO {pauses} (queue, paused_at, paused_by, reason) SELECT queue, paused_at, paused_by, reason FROM {old_pauses};
INSERT INTO {counter_hours} (queue, state, hour, n) SELECT queue, state, hour, n FROM {old_counter_hours};

INSERT INTO {workers} (id, name, host, boot_id, pid, user, version, slots, queues, jobs, state, lease, started_at, beat_at, ended_at, uid, pid_namespace)
SELECT id, name, host, boot_id, pid, user, version, slots, queues, jobs, state, lease, started_at, beat_at, ended_at, uid, pid_namespace
FROM {old_workers} ORDER BY started_at, id;
-- In schema 11 tasks and attempts kept the id of a worker after the row of the worker was deleted. Such a worker gets a new row with its id
-- and its times only. A worker process deletes that row again when it is old enough.
INSERT INTO {workers} (id, name, host, boot_id, pid, user, version, slots, jobs, state, lease, started_at, beat_at, ended_at)
SELECT worker_id, '', '', '', 0, '', '', 0, '[]', 'draining', 0, min(at), max(at), max(at)
FROM (SELECT worker_id, coalesce(finished_at, started_at, updated_at) AS at FROM {old_tasks} UNION ALL SELECT worker_id, finished_at FROM {old_attempts}) AS used
WHERE worker_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {old_workers} WHERE id = worker_id)
GROUP BY worker_id ORDER BY min(at), worker_id;

INSERT INTO {dependencies} (task_id, on_id, any_outcome, open) SELECT task_id, on_id, whatever, open FROM {old_dependencies};
-- Add the dependencies of tasks from plain SQL that no worker has adopted yet. A task in both lists has to complete.
INSERT INTO {dependencies} (task_id, on_id, any_outcome, open)
SELECT task_id, on_id, min(any_outcome), 1
FROM (SELECT {old_tasks}.id AS task_id, value AS on_id, 0 AS any_outcome, type FROM {old_tasks} CROSS JOIN json_each(after) WHERE generation_id = 0 AND after IS NOT NULL
  UNION ALL SELECT {old_tasks}.id, value, 1, type FROM {old_tasks} CROSS JOIN json_each(after_any) WHERE generation_id = 0 AND after_any IS NOT NULL) AS named
WHERE type = 'integer' AND on_id < task_id GROUP BY task_id, on_id
ON CONFLICT DO NOTHING;

-- A file name that is not UTF-8 keeps its bytes. Only plain SQL can have written one. A reader of the JSON gets replacement characters for
-- these bytes, and finds no such file.
INSERT INTO {tasks} (id, generation_id, state, queue, job, args, label, priority, run_at, expires_at, attempt, max_attempts, losses, max_losses, worker,
  lease_expires_at, unique_key, lane, schedule, tick, waits, parts, created_at, created_by, updated_at, started_at, finished_at, options, outcome, result)
SELECT id, generation_id, state, queue, job, args, label, priority, run_at, expires_at, attempt, max_attempts, losses, max_losses,
  (SELECT number FROM {workers} WHERE {workers}.id = worker_id),
  CASE WHEN lease_expires_at < 0 THEN 1 ELSE lease_expires_at END, -- only a revoked claim may have 0
  unique_key, lane, schedule, tick, waits,
  nullif(EXISTS (SELECT 1 FROM {inputs} WHERE task_id = {old_tasks}.id) + 2 * EXISTS (SELECT 1 FROM {dependencies} WHERE task_id = {old_tasks}.id), 0),
  created_at, created_by, updated_at, started_at, finished_at,
  nullif(json_patch('{}', json_object('timeout', timeout, 'kill_after', nullif(kill_after, 10000), 'backoff', nullif(backoff, 'exponential'),
    'backoff_delay', nullif(backoff_delay, 10000), 'backoff_max', nullif(backoff_max, 3600000), 'retry_on', nullif(retry_on, ''),
    'output_limit', nullif(output_limit, 1048576), 'path', nullif(path, ''), 'cwd', nullif(cwd, ''),
    -- Leave out an env that is not an object of texts. An old version accepted such an env from plain SQL.
    'env', json(CASE WHEN env <> '{}' AND json_type(env) = 'object' AND NOT EXISTS (SELECT 1 FROM json_each(env) WHERE type <> 'text') THEN env END),
    'env_file', nullif(env_file, ''))), '{}'),
  nullif(json_patch('{}', json_object('reason', nullif(reason, ''), 'error', nullif(error, ''), 'exit_code', exit_code, 'signal', nullif(signal, 0),
    -- Leave out a duration that equals the time from start to end.
    'duration', nullif(coalesce(duration, 0), CASE WHEN started_at <> 0 AND finished_at <> 0 THEN max(finished_at - started_at, 0) ELSE 0 END),
    'output_bytes', nullif(output_bytes, 0), 'output_truncated', json(CASE WHEN output_truncated <> 0 THEN 'true' END))), '{}'),
  result
FROM {old_tasks} ORDER BY id;

INSERT INTO {attempts} (task_id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome)
SELECT task_id, generation_id, attempt, state, counted, (SELECT number FROM {workers} WHERE {workers}.id = worker_id), started_at, finished_at,
  nullif(json_patch('{}', json_object('reason', nullif(reason, ''), 'error', nullif(error, ''), 'exit_code', exit_code, 'signal', nullif(signal, 0),
    'duration', nullif(coalesce(duration, 0), CASE WHEN started_at <> 0 AND finished_at <> 0 THEN max(finished_at - started_at, 0) ELSE 0 END),
    'output_bytes', nullif(output_bytes, 0), 'output_truncated', json(CASE WHEN output_truncated <> 0 THEN 'true' END))), '{}')
FROM {old_attempts} ORDER BY task_id, generation_id;

-- Cancel requests and progress reports belong to the last claim. Its generation is that of the task if the task is running, else one less.
INSERT INTO {cancel_requests} (task_id, generation_id, requested_at, now, text)
SELECT id, generation_id - (state <> 'running'), cancel_requested_at, cancel_now <> 0, cancel_text FROM {old_tasks}
WHERE cancel_requested_at IS NOT NULL ORDER BY id;
INSERT INTO {progress_reports} (task_id, generation_id, report)
SELECT id, generation_id - (state <> 'running'), progress FROM {old_tasks} WHERE progress IS NOT NULL ORDER BY id;

-- In schema 11 the stored task of a schedule had its options beside the other keys, and always all of them.
INSERT INTO {schedules} (name, cron, zone, overlap, catch_up, catch_up_window, jitter, paused_at, paused_by, next_at, last_at, last_task_id, kept_state,
  kept_duration, skipped, created_at, updated_at, task)
SELECT name, cron, zone, overlap, catch_up, catch_up_window, jitter, paused_at, paused_by, next_at, last_at, last_task_id, kept_state,
  kept_duration, skipped, created_at, updated_at,
  '{"job":' || coalesce(task -> 'job', '""')
    || CASE WHEN task ->> 'args' IS NOT NULL THEN ',"args":' || (task -> 'args') ELSE '' END
    || coalesce(',"label":' || (task -> 'label'), '')
    || ',"queue":' || coalesce(task -> 'queue', '""')
    || ',"priority":' || coalesce(task -> 'priority', '0')
    || coalesce(',"lane":' || (task -> 'lane'), '')
    || coalesce(',"expires_in":' || (task -> 'expires_in'), '')
    || coalesce(',"max_attempts":' || (task -> 'max_attempts'), '')
    || ',"max_losses":' || coalesce(task -> 'max_losses', '0')
    || coalesce(',"options":' || nullif(json_patch('{}', json_object('timeout', task ->> 'timeout', 'kill_after', nullif(coalesce(task ->> 'kill_after', 0), 10000),
      'backoff', nullif(task ->> 'backoff', 'exponential'), 'backoff_delay', nullif(coalesce(task ->> 'backoff_delay', 0), 10000),
      'backoff_max', nullif(coalesce(task ->> 'backoff_max', 0), 3600000), 'retry_on', task ->> 'retry_on',
      'output_limit', nullif(coalesce(task ->> 'output_limit', 0), 1048576), 'path', task ->> 'path', 'cwd', task ->> 'cwd', 'env', task -> 'env',
      'env_file', task ->> 'env_file')), '{}'), '') || '}'
FROM {old_schedules} ORDER BY name;
INSERT INTO {schedule_open} (schedule, task_id) SELECT schedule, task_id FROM {old_schedule_open};
INSERT INTO {schedule_inputs} (name, data) SELECT name, data FROM {old_schedule_inputs};

-- Store the highest id of a deleted task, which the counter of AUTOINCREMENT has. @prefix is the prefix of the table names.
INSERT INTO {last_ids} (id)
SELECT seq FROM sqlite_sequence WHERE name = coalesce(@prefix, '') || 'old_tasks'
  AND seq BETWEEN (SELECT coalesce(max(id), 0) + 1 FROM {tasks}) AND 9007199254740992;

DROP TABLE {old_schedule_inputs};
DROP TABLE {old_schedule_open};
DROP TABLE {old_schedules};
DROP TABLE {old_counter_hours};
DROP TABLE {old_workers};
DROP TABLE {old_pauses};
DROP TABLE {old_dependencies};
DROP TABLE {old_attempts};
DROP TABLE {old_tasks};
