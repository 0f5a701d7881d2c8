-- The history on a server, with the columns of history.sql. All writers take the same lock, but some take it together. So seq is the
-- order of the changes of one task, and not of all commits. The transaction of each event tells which ones ran at the same time.
CREATE TABLE selftest_history (
  seq            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at             BIGINT NOT NULL DEFAULT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT),
  op             TEXT NOT NULL,
  id             BIGINT,
  old_state      TEXT,   state      TEXT,
  old_generation BIGINT, generation BIGINT,
  old_worker     TEXT,   worker     TEXT,
  old_lease      BIGINT, lease      BIGINT,
  old_attempt    BIGINT, attempt    BIGINT,
  old_losses     BIGINT, losses     BIGINT,
  max_attempts   BIGINT, max_losses BIGINT,
  priority       BIGINT, queue      TEXT, job TEXT,
  label          TEXT,   unique_key TEXT, reason TEXT, error TEXT,
  result         TEXT,
  lane           TEXT,
  waits          BIGINT,
  pid            BIGINT,
  xid            BIGINT DEFAULT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT), -- id of the transaction
  oldest         BIGINT DEFAULT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT), -- all transactions below have ended
  began          BIGINT DEFAULT CAST(floor(extract(epoch FROM transaction_timestamp()) * 1000) AS BIGINT) -- when the transaction began
);

CREATE FUNCTION selftest_task() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO selftest_history (op, id, state, generation, worker, lease, attempt, losses, max_attempts, max_losses, priority,
      queue, job, label, unique_key,
      lane, waits, reason)
    VALUES ('insert', NEW.id, NEW.state, NEW.generation_id, (SELECT id FROM workers WHERE number = NEW.worker),
      NEW.lease_expires_at, NEW.attempt, NEW.losses,
      NEW.max_attempts, NEW.max_losses, NEW.priority, NEW.queue, NEW.job, NEW.label, NEW.unique_key, NEW.lane, NEW.waits,
      NEW.outcome::json ->> 'reason');
  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO selftest_history (op, id, old_state, state, old_generation, generation, old_worker, worker, old_lease, lease,
      old_attempt, attempt,
      old_losses, losses, max_attempts, max_losses, reason, error, result, waits)
    VALUES ('update', NEW.id, OLD.state, NEW.state, OLD.generation_id, NEW.generation_id,
      (SELECT id FROM workers WHERE number = OLD.worker),
      (SELECT id FROM workers WHERE number = NEW.worker), OLD.lease_expires_at, NEW.lease_expires_at, OLD.attempt, NEW.attempt,
        OLD.losses, NEW.losses,
      NEW.max_attempts, NEW.max_losses, NEW.outcome::json ->> 'reason', NEW.outcome::json ->> 'error', NEW.result, NEW.waits);
  ELSE
    INSERT INTO selftest_history (op, id, state, generation) VALUES ('delete', OLD.id, OLD.state, OLD.generation_id);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER selftest_task AFTER INSERT OR UPDATE OR DELETE ON tasks FOR EACH ROW EXECUTE FUNCTION selftest_task();

CREATE FUNCTION selftest_depends() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  INSERT INTO selftest_history (op, id, generation, attempt) VALUES ('depends', NEW.task_id, NEW.on_id, NEW.any_outcome);
  RETURN NULL;
END $$;
CREATE TRIGGER selftest_depends AFTER INSERT ON dependencies FOR EACH ROW EXECUTE FUNCTION selftest_depends();

CREATE FUNCTION selftest_attempt() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  INSERT INTO selftest_history (op, id, generation, worker, attempt, state, reason, error)
  VALUES ('attempt', NEW.task_id, NEW.generation_id, (SELECT id FROM workers WHERE number = NEW.worker), NEW.attempt, NEW.state,
    NEW.outcome::json ->> 'reason', NEW.outcome::json ->> 'error');
  RETURN NULL;
END $$;
CREATE TRIGGER selftest_attempt AFTER INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION selftest_attempt();

CREATE FUNCTION selftest_worker() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO selftest_history (op, worker, lease, job, pid) VALUES ('join', NEW.id, NEW.lease, NEW.jobs, NEW.pid);
  ELSIF NEW.ended_at IS NULL THEN
    INSERT INTO selftest_history (op, worker) VALUES ('beat', NEW.id);
  ELSIF OLD.ended_at IS NULL THEN
    INSERT INTO selftest_history (op, worker, pid) VALUES ('leave', NEW.id, CASE WHEN NEW.beat_at = NEW.ended_at THEN 1 ELSE 0 END);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER selftest_worker AFTER INSERT OR UPDATE OF beat_at, ended_at ON workers FOR EACH ROW EXECUTE FUNCTION selftest_worker();
