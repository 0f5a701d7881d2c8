-- No row stops a worker, or keeps others from enqueueing: what plain SQL may write is limited by the table itself, whoever writes it.

-- They name the column that is made anew below.
DROP TRIGGER tasks_plain;
DROP TRIGGER tasks_plain_checked;
ALTER TABLE tasks DROP COLUMN input;

-- Tasks whose ids somebody has made up get new ones, behind all others. moved_ids says which; it is dropped again.
CREATE TABLE moved_ids (
  old INTEGER PRIMARY KEY,
  new INTEGER NOT NULL
) STRICT;
INSERT INTO moved_ids (old, new)
SELECT id, row_number() OVER (ORDER BY id) + (SELECT coalesce(max(id), 0) FROM tasks WHERE id BETWEEN 1 AND 9007199254740992)
FROM tasks WHERE id NOT BETWEEN 1 AND 9007199254740992;
UPDATE tasks SET id = new FROM moved_ids WHERE id = old;
UPDATE inputs SET task_id = new FROM moved_ids WHERE task_id = old;
UPDATE attempt_rows SET task_id = new FROM moved_ids WHERE task_id = old;
UPDATE output SET task_id = new FROM moved_ids WHERE task_id = old;
UPDATE steps SET task_id = new FROM moved_ids WHERE task_id = old;
UPDATE dependencies SET on_id = new FROM moved_ids WHERE on_id = old AND new < task_id;
UPDATE dependencies SET task_id = new FROM moved_ids WHERE task_id = old AND on_id < new;
UPDATE schedule_open SET task_id = new FROM moved_ids WHERE task_id = old;
UPDATE schedule_rows SET last_task_id = new FROM moved_ids WHERE last_task_id = old;
DROP TABLE moved_ids;

-- Values beyond the limits below become the nearest ones within.
UPDATE tasks SET run_at = min(max(run_at, -62167219200000), 253402300799999),
  expires_at = min(max(expires_at, -62167219200000), 253402300799999),
  lease_expires_at = min(max(lease_expires_at, -62167219200000), 253402300799999),
  cancel_requested_at = min(max(cancel_requested_at, -62167219200000), 253402300799999),
  created_at = min(max(created_at, -62167219200000), 253402300799999),
  updated_at = min(max(updated_at, -62167219200000), 253402300799999),
  started_at = min(max(started_at, -62167219200000), 253402300799999),
  finished_at = min(max(finished_at, -62167219200000), 253402300799999),
  tick = min(max(tick, -62167219200000), 253402300799999)
WHERE run_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR expires_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR lease_expires_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR cancel_requested_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR created_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR updated_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR started_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR finished_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR tick NOT BETWEEN -62167219200000 AND 253402300799999;
UPDATE tasks SET generation_id = min(max(generation_id, 0), 9007199254740992),
  attempt = min(max(attempt, 0), 9007199254740992),
  output_bytes = min(max(output_bytes, 0), 9007199254740992),
  output_truncated = min(max(output_truncated, 0), 9007199254740992),
  input_bytes = min(max(input_bytes, 0), 9007199254740992),
  output_limit = min(max(output_limit, 0), 9007199254740992)
WHERE generation_id NOT BETWEEN 0 AND 9007199254740992
  OR attempt NOT BETWEEN 0 AND 9007199254740992
  OR output_bytes NOT BETWEEN 0 AND 9007199254740992
  OR output_truncated NOT BETWEEN 0 AND 9007199254740992
  OR input_bytes NOT BETWEEN 0 AND 9007199254740992
  OR output_limit NOT BETWEEN 0 AND 9007199254740992;
UPDATE tasks SET duration = min(max(duration, -9007199254740992), 9007199254740992),
  exit_code = min(max(exit_code, -9007199254740992), 9007199254740992),
  signal = min(max(signal, -9007199254740992), 9007199254740992),
  cancel_now = min(max(cancel_now, -9007199254740992), 9007199254740992)
WHERE duration NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR exit_code NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR signal NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR cancel_now NOT BETWEEN -9007199254740992 AND 9007199254740992;
UPDATE tasks SET losses = min(losses, 2147483647), max_losses = min(max_losses, 2147483647), max_attempts = min(max_attempts, 2147483647)
WHERE max_losses > 2147483647 OR max_attempts > 2147483647;
UPDATE tasks SET retry_on = NULL WHERE length(CAST(retry_on AS BLOB)) > 1000;
UPDATE tasks SET created_by = NULL WHERE length(CAST(created_by AS BLOB)) > 200;
UPDATE tasks SET reason = NULL WHERE length(CAST(reason AS BLOB)) > 200;
UPDATE tasks SET progress = NULL WHERE length(CAST(progress AS BLOB)) > 10000 OR instr(progress, char(0));
UPDATE tasks SET args = 'null' WHERE instr(args, char(0));
UPDATE tasks SET result = NULL WHERE instr(result, char(0));

-- What a command reads on stdin, for those who write it here: it reads NULL, since it is moved to inputs. The constraints are those of all
-- columns: SQLite adds none to a table, only to a new column. A name is what the error says.
ALTER TABLE tasks ADD COLUMN input ANY -- text or BLOB
  CONSTRAINT "id: 1 to 9007199254740992" CHECK (id BETWEEN 1 AND 9007199254740992)
  CONSTRAINT "generation_id: at most 9007199254740992" CHECK (generation_id <= 9007199254740992)
  CONSTRAINT "max_attempts, max_losses: at most 2147483647" CHECK (coalesce(max_attempts, 1) <= 2147483647 AND max_losses <= 2147483647)
  CONSTRAINT "times: milliseconds since 1970, of the years 0 to 9999" CHECK (
    min(run_at, coalesce(expires_at, 0), coalesce(lease_expires_at, 0), coalesce(cancel_requested_at, 0), created_at,
      updated_at, coalesce(started_at, 0), coalesce(finished_at, 0), coalesce(tick, 0)) >= -62167219200000
    AND max(run_at, coalesce(expires_at, 0), coalesce(lease_expires_at, 0), coalesce(cancel_requested_at, 0), created_at,
      updated_at, coalesce(started_at, 0), coalesce(finished_at, 0), coalesce(tick, 0)) <= 253402300799999)
  CONSTRAINT "numbers: at most 9007199254740992" CHECK (
    max(coalesce(duration, 0), output_bytes, output_truncated, input_bytes, output_limit, attempt, coalesce(exit_code, 0), coalesce(signal, 0), cancel_now) <= 9007199254740992
    AND min(coalesce(duration, 0), output_bytes, output_truncated, input_bytes, output_limit, attempt, coalesce(exit_code, 0), coalesce(signal, 0), cancel_now) >= -9007199254740992)
  CONSTRAINT "retry_on, created_by, reason: at most 1000, 200 and 200 bytes" CHECK (coalesce(length(CAST(retry_on AS BLOB)), 0) <= 1000
    AND coalesce(length(CAST(created_by AS BLOB)), 0) <= 200 AND coalesce(length(CAST(reason AS BLOB)), 0) <= 200)
  CONSTRAINT "progress: at most 10000 bytes, no NUL" CHECK (coalesce(length(CAST(progress AS BLOB)), 0) <= 10000 AND coalesce(instr(progress, char(0)), 0) = 0)
  CONSTRAINT "args: no NUL" CHECK (coalesce(instr(args, char(0)), 0) = 0)
  CONSTRAINT "result: no NUL" CHECK (coalesce(instr(result, char(0)), 0) = 0);

-- The database gives the ids: in this trigger that of a row without one is -1. A check of the table is not enough, since INSERT OR IGNORE
-- takes the next id from a row that it ignores, and since the next row needs an id, too.
CREATE TRIGGER tasks_id BEFORE INSERT ON tasks
WHEN NEW.id <> -1 AND (NEW.generation_id = 0 OR NEW.id NOT BETWEEN 1 AND 4503599627370496) OR NEW.generation_id > 4503599627370496
BEGIN
  SELECT RAISE(ABORT, 'id, generation_id: leave them out, the database gives them');
END;

-- An id stays what it is.
CREATE TRIGGER tasks_id_kept BEFORE UPDATE OF id ON tasks WHEN NEW.id <> OLD.id
BEGIN
  SELECT RAISE(ABORT, 'id: it cannot be changed');
END;

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
  SELECT RAISE(ABORT, 'created_by: no control characters')
    WHERE NEW.created_by GLOB '*[' || char(1) || '-' || char(31) || char(127) || '-' || char(159) || ']*' OR instr(NEW.created_by, char(0));
  SELECT RAISE(ABORT, 'after, after_any: a JSON array of ids of tasks that exist')
    FROM (SELECT NEW.after AS list UNION ALL SELECT NEW.after_any) WHERE json_type(list) <> 'array'
      OR EXISTS (SELECT 1 FROM json_each(list) WHERE type <> 'integer' OR value >= NEW.id OR NOT EXISTS (SELECT 1 FROM tasks WHERE id = value));
  SELECT RAISE(ABORT, 'run_at: milliseconds since 1970, up to the year 9999') WHERE NEW.run_at NOT BETWEEN 0 AND 253402300799999;
  SELECT RAISE(ABORT, 'expires_at: milliseconds since 1970, up to the year 9999') WHERE NEW.expires_at NOT BETWEEN 0 AND 253402300799999;
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
