-- PostgreSQL 2: as SQLite's 0013_bounds.sql. No row stops a worker, or keeps others from enqueueing.

-- The database gives the ids. A task with one that somebody has made up would be in the way of the one that gets it.
ALTER TABLE tasks ALTER COLUMN id SET GENERATED ALWAYS;

-- Values beyond the limits below become the nearest ones within.
UPDATE tasks SET run_at = CASE WHEN run_at NOT BETWEEN -62167219200000 AND 253402300799999 THEN least(greatest(run_at, -62167219200000), 253402300799999) ELSE run_at END,
  expires_at = CASE WHEN expires_at NOT BETWEEN -62167219200000 AND 253402300799999 THEN least(greatest(expires_at, -62167219200000), 253402300799999) ELSE expires_at END,
  lease_expires_at = CASE WHEN lease_expires_at NOT BETWEEN -62167219200000 AND 253402300799999 THEN least(greatest(lease_expires_at, -62167219200000), 253402300799999) ELSE lease_expires_at END,
  cancel_requested_at = CASE WHEN cancel_requested_at NOT BETWEEN -62167219200000 AND 253402300799999 THEN least(greatest(cancel_requested_at, -62167219200000), 253402300799999) ELSE cancel_requested_at END,
  created_at = CASE WHEN created_at NOT BETWEEN -62167219200000 AND 253402300799999 THEN least(greatest(created_at, -62167219200000), 253402300799999) ELSE created_at END,
  updated_at = CASE WHEN updated_at NOT BETWEEN -62167219200000 AND 253402300799999 THEN least(greatest(updated_at, -62167219200000), 253402300799999) ELSE updated_at END,
  started_at = CASE WHEN started_at NOT BETWEEN -62167219200000 AND 253402300799999 THEN least(greatest(started_at, -62167219200000), 253402300799999) ELSE started_at END,
  finished_at = CASE WHEN finished_at NOT BETWEEN -62167219200000 AND 253402300799999 THEN least(greatest(finished_at, -62167219200000), 253402300799999) ELSE finished_at END,
  tick = CASE WHEN tick NOT BETWEEN -62167219200000 AND 253402300799999 THEN least(greatest(tick, -62167219200000), 253402300799999) ELSE tick END
WHERE run_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR expires_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR lease_expires_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR cancel_requested_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR created_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR updated_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR started_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR finished_at NOT BETWEEN -62167219200000 AND 253402300799999
  OR tick NOT BETWEEN -62167219200000 AND 253402300799999;
UPDATE tasks SET generation_id = CASE WHEN generation_id NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(generation_id, -9007199254740992), 9007199254740992) ELSE generation_id END,
  duration = CASE WHEN duration NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(duration, -9007199254740992), 9007199254740992) ELSE duration END,
  output_bytes = CASE WHEN output_bytes NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(output_bytes, -9007199254740992), 9007199254740992) ELSE output_bytes END,
  output_truncated = CASE WHEN output_truncated NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(output_truncated, -9007199254740992), 9007199254740992) ELSE output_truncated END,
  input_bytes = CASE WHEN input_bytes NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(input_bytes, -9007199254740992), 9007199254740992) ELSE input_bytes END,
  output_limit = CASE WHEN output_limit NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(output_limit, -9007199254740992), 9007199254740992) ELSE output_limit END,
  attempt = CASE WHEN attempt NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(attempt, -9007199254740992), 9007199254740992) ELSE attempt END,
  exit_code = CASE WHEN exit_code NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(exit_code, -9007199254740992), 9007199254740992) ELSE exit_code END,
  signal = CASE WHEN signal NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(signal, -9007199254740992), 9007199254740992) ELSE signal END,
  cancel_now = CASE WHEN cancel_now NOT BETWEEN -9007199254740992 AND 9007199254740992 THEN least(greatest(cancel_now, -9007199254740992), 9007199254740992) ELSE cancel_now END
WHERE generation_id NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR duration NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR output_bytes NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR output_truncated NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR input_bytes NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR output_limit NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR attempt NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR exit_code NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR signal NOT BETWEEN -9007199254740992 AND 9007199254740992
  OR cancel_now NOT BETWEEN -9007199254740992 AND 9007199254740992;
UPDATE tasks SET losses = least(losses, 2147483647), max_losses = least(max_losses, 2147483647),
  max_attempts = CASE WHEN max_attempts > 2147483647 THEN 2147483647 ELSE max_attempts END
WHERE max_losses > 2147483647 OR max_attempts > 2147483647;
UPDATE tasks SET retry_on = NULL WHERE octet_length(retry_on) > 1000;
UPDATE tasks SET created_by = NULL WHERE octet_length(created_by) > 200;
UPDATE tasks SET reason = NULL WHERE octet_length(reason) > 200;
UPDATE tasks SET progress = NULL WHERE octet_length(progress) > 10000;

ALTER TABLE tasks
  ADD CONSTRAINT "generation_id: at most 9007199254740992" CHECK (generation_id <= 9007199254740992),
  ADD CONSTRAINT "max_attempts, max_losses: at most 2147483647" CHECK (coalesce(max_attempts, 1) <= 2147483647 AND max_losses <= 2147483647),
  ADD CONSTRAINT "times: milliseconds since 1970, of the years 0 to 9999" CHECK (
    least(run_at, expires_at, lease_expires_at, cancel_requested_at, created_at,
      updated_at, started_at, finished_at, tick) >= -62167219200000
    AND greatest(run_at, expires_at, lease_expires_at, cancel_requested_at, created_at,
      updated_at, started_at, finished_at, tick) <= 253402300799999),
  ADD CONSTRAINT "numbers: at most 9007199254740992" CHECK (
    greatest(duration, output_bytes, output_truncated, input_bytes, output_limit, attempt, exit_code, signal, cancel_now) <= 9007199254740992
    AND least(duration, output_bytes, output_truncated, input_bytes, output_limit, attempt, exit_code, signal, cancel_now) >= -9007199254740992),
  ADD CONSTRAINT "retry_on, created_by, reason: at most 1000, 200, 200 bytes" CHECK (coalesce(octet_length(retry_on), 0) <= 1000
    AND coalesce(octet_length(created_by), 0) <= 200 AND coalesce(octet_length(reason), 0) <= 200),
  ADD CONSTRAINT "progress: at most 10000 bytes" CHECK (octet_length(progress) <= 10000);

-- Says what is wrong with a row of plain SQL, as package jobs would, and gives it its true state. A row with a lane, or that names other
-- tasks, stays scheduled until a worker looks; one that names others keeps generation 0 until then. A text cannot hold a NUL here.
CREATE OR REPLACE FUNCTION tasks_plain() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE list TEXT;
BEGIN
  IF NEW.job !~ '^[A-Za-z0-9][A-Za-z0-9._:/-]*$' OR NEW.job ~ '\n' THEN
    RAISE EXCEPTION 'job: a letter or digit, then letters, digits and . _ - : /' USING ERRCODE = 'check_violation'; END IF;
  IF NEW.queue !~ '^[A-Za-z0-9][A-Za-z0-9._-]*$' OR NEW.queue ~ '\n' THEN
    RAISE EXCEPTION 'queue: a letter or digit, then letters, digits and . _ -' USING ERRCODE = 'check_violation'; END IF;
  IF NEW.label ~ '[\u0001-\u001f\u007f-\u009f]' THEN RAISE EXCEPTION 'label: no control characters' USING ERRCODE = 'check_violation'; END IF;
  IF NEW.unique_key ~ '[\u0001-\u001f\u007f-\u009f]' THEN RAISE EXCEPTION 'unique_key: no control characters' USING ERRCODE = 'check_violation'; END IF;
  IF NEW.lane ~ '[\u0001-\u001f\u007f-\u009f]' THEN RAISE EXCEPTION 'lane: no control characters' USING ERRCODE = 'check_violation'; END IF;
  IF NEW.created_by ~ '[\u0001-\u001f\u007f-\u009f]' THEN RAISE EXCEPTION 'created_by: no control characters' USING ERRCODE = 'check_violation'; END IF;
  FOREACH list IN ARRAY ARRAY[NEW.after, NEW.after_any] LOOP
    CONTINUE WHEN list IS NULL;
    IF (CASE WHEN list !~ '^\s*\[' THEN true ELSE EXISTS (SELECT 1 FROM json_array_elements(list::json) AS e (value)
        WHERE json_typeof(value) <> 'number' OR value::text !~ '^[0-9]{1,18}$' OR value::text::bigint >= NEW.id
          OR NOT EXISTS (SELECT 1 FROM tasks WHERE id = value::text::bigint)) END) THEN
      RAISE EXCEPTION 'after, after_any: a JSON array of ids of tasks that exist' USING ERRCODE = 'check_violation'; END IF;
  END LOOP;
  IF NEW.run_at NOT BETWEEN 0 AND 253402300799999 THEN RAISE EXCEPTION 'run_at: milliseconds since 1970, up to the year 9999' USING ERRCODE = 'check_violation'; END IF;
  IF NEW.expires_at NOT BETWEEN 0 AND 253402300799999 THEN RAISE EXCEPTION 'expires_at: milliseconds since 1970, up to the year 9999' USING ERRCODE = 'check_violation'; END IF;
  IF greatest(coalesce(NEW.timeout, 0), NEW.kill_after, NEW.backoff_delay, NEW.backoff_max) > 315360000000 THEN
    RAISE EXCEPTION 'timeout, kill_after, backoff_delay, backoff_max: milliseconds, at most ten years' USING ERRCODE = 'check_violation'; END IF;
  IF greatest(coalesce(NEW.max_attempts, 1), NEW.max_losses) > 2147483647 THEN
    RAISE EXCEPTION 'max_attempts, max_losses: at most 2147483647' USING ERRCODE = 'check_violation'; END IF;
  IF NEW.retry_on !~ '^[0-9,-]+$' THEN RAISE EXCEPTION 'retry_on: exit codes, as in 75,100-111' USING ERRCODE = 'check_violation'; END IF;
  IF (CASE WHEN NEW.env IS NULL THEN false WHEN json_typeof(NEW.env::json) <> 'object' THEN true ELSE EXISTS (SELECT 1 FROM json_each(NEW.env::json) AS e
      WHERE json_typeof(e.value) <> 'string' OR e.key = '' OR strpos(e.key, '=') > 0 OR strpos(e.value::text, '\u0000') > 0) END) THEN
    RAISE EXCEPTION 'env: a JSON object of texts' USING ERRCODE = 'check_violation'; END IF;
  IF octet_length(NEW.input) > 16777216 THEN RAISE EXCEPTION 'input: at most 16777216 bytes' USING ERRCODE = 'check_violation'; END IF;
  PERFORM NEW.args::json; -- it must be JSON
  IF NEW.state IS DISTINCT FROM 'scheduled' OR NEW.attempt <> 0 OR NEW.losses <> 0 OR NEW.output_bytes <> 0 OR NEW.output_truncated <> 0
      OR NEW.input_bytes <> 0 OR NEW.cancel_now <> 0 OR NEW.created_at <> NEW.updated_at
      OR num_nonnulls(NEW.reason, NEW.path, NEW.worker_id, NEW.cancel_requested_at, NEW.cancel_text, NEW.started_at, NEW.duration, NEW.result,
        NEW.error, NEW.exit_code, NEW.signal, NEW.progress, NEW.schedule, NEW.tick, NEW.waits, NEW.finished_at, NEW.lease_expires_at) > 0 THEN
    RAISE EXCEPTION 'a column that is read only' USING ERRCODE = 'check_violation'; END IF;
  IF NEW.after IS NULL AND NEW.after_any IS NULL THEN
    NEW.generation_id := 1;
    IF NEW.run_at <= NEW.created_at AND NEW.lane IS NULL THEN NEW.state := 'pending'; END IF;
  END IF;
  PERFORM pg_notify('runner_' || TG_TABLE_SCHEMA, '');
  RETURN NEW;
END $$;

-- Whoever makes up a generation leaves room for those that follow.
CREATE FUNCTION tasks_generation() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'generation_id: leave it out, the database gives it' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER tasks_generation BEFORE INSERT ON tasks FOR EACH ROW WHEN (NEW.generation_id > 4503599627370496) EXECUTE FUNCTION tasks_generation();
