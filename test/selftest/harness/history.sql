-- The history: every change of a task's state, owner and lease in commit order. SQLite has one writer at a time, so seq is the
-- order of the commits. Only the selftest installs these triggers.
CREATE TABLE selftest_history (
  seq            INTEGER PRIMARY KEY AUTOINCREMENT,
  at             INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  op             TEXT NOT NULL, -- task: insert, update, delete, depends, attempt; worker: join, beat, leave
  id             INTEGER,                                        -- id of the task
  old_state      TEXT,    state      TEXT,
  old_generation INTEGER, generation INTEGER,                    -- attempt: generation of the claim; depends: id of the dependency
  old_worker     TEXT,    worker     TEXT,
  old_lease      INTEGER, lease      INTEGER,                    -- join: length of the leases
  old_attempt    INTEGER, attempt    INTEGER,                    -- depends: 1 if any outcome of the dependency is enough
  old_losses     INTEGER, losses     INTEGER,
  max_attempts   INTEGER, max_losses INTEGER,
  priority       INTEGER, queue      TEXT, job TEXT,             -- join: jobs of the worker as JSON
  label          TEXT,    unique_key TEXT, reason TEXT, error TEXT,
  result         TEXT,                                           -- names the generation of the execution that wrote it
  lane           TEXT,
  waits          INTEGER,                                        -- blocked task: 0 if it waits for its lane only
  pid            INTEGER,                                        -- pid of the worker; leave: 1 if the worker itself wrote it
  xid            INTEGER, oldest INTEGER, began INTEGER          -- see history_server.sql
) STRICT;

CREATE TRIGGER selftest_insert AFTER INSERT ON tasks BEGIN
  INSERT INTO selftest_history (op, id, state, generation, worker, lease, attempt, losses, max_attempts, max_losses, priority,
    queue, job, label, unique_key,
    lane, waits, reason)
  VALUES ('insert', NEW.id, NEW.state, NEW.generation_id, (SELECT id FROM workers WHERE number = NEW.worker),
    NEW.lease_expires_at, NEW.attempt, NEW.losses,
    NEW.max_attempts, NEW.max_losses, NEW.priority, NEW.queue, NEW.job, NEW.label, NEW.unique_key, NEW.lane, NEW.waits,
    NEW.outcome ->> '$.reason');
END;

CREATE TRIGGER selftest_update AFTER UPDATE ON tasks BEGIN
  INSERT INTO selftest_history (op, id, old_state, state, old_generation, generation, old_worker, worker, old_lease, lease,
    old_attempt, attempt,
    old_losses, losses, max_attempts, max_losses, reason, error, result, waits)
  VALUES ('update', NEW.id, OLD.state, NEW.state, OLD.generation_id, NEW.generation_id,
    (SELECT id FROM workers WHERE number = OLD.worker),
    (SELECT id FROM workers WHERE number = NEW.worker), OLD.lease_expires_at, NEW.lease_expires_at, OLD.attempt, NEW.attempt,
      OLD.losses, NEW.losses,
    NEW.max_attempts, NEW.max_losses, NEW.outcome ->> '$.reason', NEW.outcome ->> '$.error', NEW.result, NEW.waits);
END;

CREATE TRIGGER selftest_delete AFTER DELETE ON tasks BEGIN
  INSERT INTO selftest_history (op, id, state, generation) VALUES ('delete', OLD.id, OLD.state, OLD.generation_id);
END;

CREATE TRIGGER selftest_depends AFTER INSERT ON dependencies BEGIN
  INSERT INTO selftest_history (op, id, generation, attempt) VALUES ('depends', NEW.task_id, NEW.on_id, NEW.any_outcome);
END;

CREATE TRIGGER selftest_attempt AFTER INSERT ON attempts BEGIN
  INSERT INTO selftest_history (op, id, generation, worker, attempt, state, reason, error)
  VALUES ('attempt', NEW.task_id, NEW.generation_id, (SELECT id FROM workers WHERE number = NEW.worker), NEW.attempt, NEW.state,
    NEW.outcome ->> '$.reason', NEW.outcome ->> '$.error');
END;

CREATE TRIGGER selftest_join AFTER INSERT ON workers BEGIN
  INSERT INTO selftest_history (op, worker, lease, job, pid) VALUES ('join', NEW.id, NEW.lease, NEW.jobs, NEW.pid);
END;

CREATE TRIGGER selftest_beat AFTER UPDATE OF beat_at ON workers WHEN NEW.ended_at IS NULL BEGIN
  INSERT INTO selftest_history (op, worker) VALUES ('beat', NEW.id);
END;

CREATE TRIGGER selftest_leave AFTER UPDATE OF ended_at ON workers WHEN OLD.ended_at IS NULL BEGIN
  INSERT INTO selftest_history (op, worker, pid) VALUES ('leave', NEW.id, NEW.beat_at = NEW.ended_at);
END;
