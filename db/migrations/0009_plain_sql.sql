-- Tasks that other programs insert by plain SQL. docs/sql.md is the contract.

-- What a command reads on stdin, for those who write it here: it reads NULL, since it is moved to inputs.
ALTER TABLE tasks ADD COLUMN input ANY; -- text or BLOB

-- What it asked is asked below.
DROP TRIGGER tasks_after;

-- A row of plain SQL is born scheduled, with generation 0. Our own are born with generation 1: all that they pay is the question, 1 µs, and
-- that is why what follows from it is a trigger apart. The update of input changes nothing and fires that.
CREATE TRIGGER tasks_plain AFTER INSERT ON tasks WHEN NEW.generation_id = 0
BEGIN
  UPDATE tasks SET input = input WHERE id = NEW.id;
END;

-- Says what is wrong with a row of plain SQL, as package jobs would, and gives it its true state. It has no clock: run_at and created_at
-- have the same default. A row with a lane, or that names other tasks, stays scheduled until a worker looks; one that names others keeps
-- generation 0 until then. input is moved here, too, and where that program has set recursive_triggers this would fire again: hence
-- OLD.input. Texts are measured in bytes besides, since length() ends at a NUL.
CREATE TRIGGER tasks_plain_checked AFTER UPDATE OF input ON tasks WHEN NEW.generation_id = 0 AND NEW.input IS OLD.input
BEGIN
  SELECT RAISE(ABORT, 'job: a letter or digit, then letters, digits and . _ - : /')
    WHERE NEW.job NOT GLOB '[A-Za-z0-9]*' OR NEW.job GLOB '*[^A-Za-z0-9._:/-]*' OR length(CAST(NEW.job AS BLOB)) <> length(NEW.job);
  SELECT RAISE(ABORT, 'queue: a letter or digit, then letters, digits and . _ -')
    WHERE NEW.queue NOT GLOB '[A-Za-z0-9]*' OR NEW.queue GLOB '*[^A-Za-z0-9._-]*' OR length(CAST(NEW.queue AS BLOB)) <> length(NEW.queue);
  SELECT RAISE(ABORT, 'label: no control characters')
    WHERE NEW.label GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*' OR instr(NEW.label, char(0));
  SELECT RAISE(ABORT, 'unique_key: no control characters')
    WHERE NEW.unique_key GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*' OR instr(NEW.unique_key, char(0));
  SELECT RAISE(ABORT, 'lane: no control characters')
    WHERE NEW.lane GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*' OR instr(NEW.lane, char(0));
  SELECT RAISE(ABORT, 'after, after_any: a JSON array of ids of tasks that exist')
    FROM (SELECT NEW.after AS list UNION ALL SELECT NEW.after_any) WHERE json_type(list) <> 'array'
      OR EXISTS (SELECT 1 FROM json_each(list) WHERE type <> 'integer' OR value >= NEW.id OR NOT EXISTS (SELECT 1 FROM tasks WHERE id = value));
  SELECT RAISE(ABORT, 'run_at: milliseconds since 1970, up to the year 9999') WHERE NEW.run_at > 253402300799999;
  SELECT RAISE(ABORT, 'expires_at: milliseconds since 1970, up to the year 9999') WHERE NEW.expires_at > 253402300799999;
  SELECT RAISE(ABORT, 'timeout, kill_after, backoff_delay, backoff_max: milliseconds, at most ten years')
    WHERE max(coalesce(NEW.timeout, 0), NEW.kill_after, NEW.backoff_delay, NEW.backoff_max) > 315360000000;
  SELECT RAISE(ABORT, 'max_attempts, max_losses: at most 2147483647') WHERE max(coalesce(NEW.max_attempts, 1), NEW.max_losses) > 2147483647;
  SELECT RAISE(ABORT, 'retry_on: exit codes, as in 75,100-111') WHERE NEW.retry_on = '' OR NEW.retry_on GLOB '*[^0-9,-]*';
  SELECT RAISE(ABORT, 'cwd, env_file: no NUL') WHERE instr(NEW.cwd, char(0)) OR instr(NEW.env_file, char(0));
  SELECT RAISE(ABORT, 'env: a JSON object of texts') WHERE json_type(NEW.env) <> 'object'
    OR EXISTS (SELECT 1 FROM json_each(NEW.env) WHERE type <> 'text' OR key = '' OR instr(key, '=') OR instr(key || value, char(0)));
  SELECT RAISE(ABORT, 'input: text or BLOB, at most 16777216 bytes')
    WHERE typeof(NEW.input) = 'integer' OR typeof(NEW.input) = 'real' OR length(CAST(NEW.input AS BLOB)) > 16777216;
  SELECT RAISE(ABORT, 'a column that is read only')
    WHERE NEW.state <> 'scheduled' OR NEW.attempt <> 0 OR NEW.losses <> 0 OR NEW.created_at <> NEW.updated_at OR NEW.output_bytes <> 0
      OR NEW.output_truncated <> 0 OR NEW.input_bytes <> 0 OR NEW.cancel_now <> 0 OR coalesce(NEW.reason, NEW.path, NEW.worker_id,
        NEW.cancel_requested_at, NEW.cancel_text, NEW.started_at, NEW.duration, NEW.result, NEW.error, NEW.exit_code, NEW.signal,
        NEW.progress, NEW.schedule, NEW.tick, NEW.waits) IS NOT NULL;
  INSERT INTO inputs (task_id, data) SELECT NEW.id, CAST(NEW.input AS BLOB) WHERE length(CAST(NEW.input AS BLOB)) > 0;
  UPDATE tasks SET generation_id = (after IS NULL AND after_any IS NULL),
      state = CASE WHEN run_at <= created_at AND lane IS NULL AND after IS NULL AND after_any IS NULL THEN 'pending' ELSE 'scheduled' END,
      input = NULL, input_bytes = coalesce(length(CAST(input AS BLOB)), 0)
    WHERE id = NEW.id AND (NEW.input IS NOT NULL OR after IS NULL AND after_any IS NULL);
END;
