-- A trigger on the state of tasks ran, to no end, at each claim and at each completion, and made them prepare to be undone: a tenth of the life of
-- a task. None of the columns below is written by either; retry and the reset by hand write them.
DROP TRIGGER tasks_reopened;

-- A completed task that is set back, by retry or by hand, keeps the record of the attempt that completed it.
CREATE TRIGGER tasks_reopened AFTER UPDATE OF run_at, losses, expires_at ON tasks
WHEN OLD.state = 'completed' AND NEW.state <> 'completed' AND OLD.worker_id IS NOT NULL AND OLD.started_at IS NOT NULL
BEGIN
  INSERT OR IGNORE INTO attempt_rows (task_id, generation_id, attempt, state, counted, worker_id, started_at, finished_at, duration, exit_code,
    output_bytes, output_truncated)
  VALUES (OLD.id, OLD.generation_id - 1, OLD.attempt, 'completed', 1, OLD.worker_id, OLD.started_at, OLD.finished_at, coalesce(OLD.duration, 0),
    OLD.exit_code, OLD.output_bytes, OLD.output_truncated);
END;
