-- Schema 3: schedules.

ALTER TABLE tasks ADD COLUMN schedule TEXT CHECK (schedule IS NULL OR length(schedule) BETWEEN 1 AND 100); -- whose task it is
ALTER TABLE tasks ADD COLUMN tick INTEGER; -- of schedule: the moment it was enqueued for; null: it was run by hand

-- One task for each tick of a schedule, however many workers see it. Also the tasks of a schedule by tick.
CREATE UNIQUE INDEX tasks_tick ON tasks (schedule, tick) WHERE schedule IS NOT NULL;

-- One row is one schedule. Other programs read the view schedules.
CREATE TABLE schedule_rows (
  name            TEXT PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 100),
  cron            TEXT NOT NULL CHECK (length(CAST(cron AS BLOB)) <= 1000), -- five fields, @hourly and its like, or @every 90s
  zone            TEXT NOT NULL,                             -- of the IANA database
  overlap         TEXT NOT NULL CHECK (overlap = 'skip' OR overlap = 'allow' OR overlap = 'replace'), -- at a tick while an earlier task is unfinished
  catch_up        TEXT NOT NULL CHECK (catch_up = 'one' OR catch_up = 'skip' OR catch_up = 'all'), -- for ticks that nobody saw
  catch_up_window INTEGER NOT NULL CHECK (catch_up_window > 0), -- how old a tick may be that is caught up by all
  jitter          INTEGER NOT NULL CHECK (jitter >= 0),      -- tasks are due up to so much after their tick
  paused_at       INTEGER,                                   -- null: it is not paused
  paused_by       TEXT,
  next_at         INTEGER,                                   -- the first tick that nobody has dealt with; null: none, or paused
  last_at         INTEGER,                                   -- when the last task was due: its tick, or the time of a run by hand
  last_task_id    INTEGER,                                   -- it may have been deleted
  kept_state      TEXT,                                      -- of the last task, once it has been deleted
  kept_duration   INTEGER,                                   -- likewise
  skipped         INTEGER NOT NULL DEFAULT 0,                -- ticks skipped because of overlap
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,                          -- of the definition, or of the pause
  task            TEXT NOT NULL CHECK (json_valid(task)),    -- what is enqueued: an object with the columns of a task
  CHECK (paused_at IS NULL OR next_at IS NULL)
) STRICT;
-- What ticks next.
CREATE INDEX schedules_next ON schedule_rows (next_at) WHERE next_at IS NOT NULL;

-- The tasks of a schedule that were unfinished when they were last looked at: what overlap asks for. An index over tasks would know it
-- better and cost every finish 4 %.
CREATE TABLE schedule_open (
  schedule TEXT NOT NULL REFERENCES schedule_rows (name) ON DELETE CASCADE,
  task_id  INTEGER NOT NULL,
  PRIMARY KEY (schedule, task_id)
) STRICT, WITHOUT ROWID;

-- What the commands of a schedule read on stdin: aside, since up to 16 MiB in its row would be rewritten at every tick.
CREATE TABLE schedule_inputs (
  name TEXT PRIMARY KEY REFERENCES schedule_rows (name) ON DELETE CASCADE,
  data BLOB NOT NULL CHECK (length(data) <= 16777216)
) STRICT;

-- The end of a schedule's last task outlives the task.
CREATE TRIGGER schedules_keep BEFORE DELETE ON tasks WHEN OLD.schedule IS NOT NULL BEGIN
  UPDATE schedule_rows SET kept_state = OLD.state, kept_duration = OLD.duration WHERE name = OLD.schedule AND last_task_id = OLD.id; END;

-- The schedules as they are. Times and durations as in tasks; paused is 0 or 1.
CREATE VIEW schedules AS
SELECT s.name, s.cron, s.zone, s.overlap, s.catch_up, s.catch_up_window, s.jitter, s.paused_at IS NOT NULL AS paused, s.next_at, s.last_at,
  s.last_task_id, coalesce(t.state, s.kept_state) AS last_state, iif(t.id IS NULL, s.kept_duration, t.duration) AS last_duration, s.skipped,
  s.task, s.created_at, s.updated_at, s.paused_at, s.paused_by
FROM schedule_rows AS s LEFT JOIN tasks AS t ON t.id = s.last_task_id;
