-- A database of schema 11: that of schema 10 as runner upgraded it, and rows that were added by hand. upgrade_test.go says what is in it.
PRAGMA foreign_keys = OFF;
PRAGMA application_id = 1383427698;
PRAGMA user_version = 11;
BEGIN TRANSACTION;
CREATE TABLE IF NOT EXISTS "attempt_rows" (
  task_id          INTEGER NOT NULL,
  generation_id    INTEGER NOT NULL, -- of the claim
  attempt          INTEGER NOT NULL, -- a lost one and its repeat share a number
  state            TEXT NOT NULL,    -- completed, failed, cancelled or snoozed
  reason           TEXT,
  counted          INTEGER NOT NULL, -- 0: lost, given back or snoozed
  worker_id        TEXT NOT NULL,
  started_at       INTEGER NOT NULL,
  finished_at      INTEGER NOT NULL,
  duration         INTEGER NOT NULL,
  exit_code        INTEGER,
  signal           INTEGER,
  error            TEXT,
  output_bytes     INTEGER NOT NULL DEFAULT 0,
  output_truncated INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task_id, generation_id)
) STRICT, WITHOUT ROWID;
INSERT INTO attempt_rows VALUES(2,2,1,'failed','exit',1,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',1795263535806,1795263535843,24,7,NULL,'exit status 7',0,0);
INSERT INTO attempt_rows VALUES(2,5,2,'failed','exit',1,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',1795263535863,1795263535875,3,7,NULL,'exit status 7',0,0);
INSERT INTO attempt_rows VALUES(16,2,1,'failed','lost',0,'01a1fe0b-0000-7000-8000-00000000dead',1795264011000,1795264012000,1000,NULL,NULL,'its worker was lost',0,0);
INSERT INTO attempt_rows VALUES(16,4,1,'failed','exit',1,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',1795264014000,1795264015000,900,75,NULL,'exit status 75',2000000,1);
INSERT INTO attempt_rows VALUES(19,2,1,'failed','signal',1,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',1795264041000,1795264042000,1001,NULL,9,'killed by signal 9',0,0);
INSERT INTO attempt_rows VALUES(27,2,1,'snoozed',NULL,0,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',1795264081000,1795264082000,1000,NULL,NULL,NULL,0,0);
INSERT INTO attempt_rows VALUES(28,2,1,'completed',NULL,1,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',1795264091000,1795264091000,0,0,NULL,NULL,0,0);
CREATE TABLE counter_hours (
  queue TEXT NOT NULL,
  state TEXT NOT NULL,    -- completed, failed or cancelled
  hour  INTEGER NOT NULL, -- since 1970
  n     INTEGER NOT NULL,
  PRIMARY KEY (queue, state, hour)
) STRICT, WITHOUT ROWID;
INSERT INTO counter_hours VALUES('default','completed',498600,1234);
CREATE TABLE counters (
  queue  TEXT NOT NULL,
  state  TEXT NOT NULL,    -- completed, failed or cancelled
  minute INTEGER NOT NULL, -- since 1970
  n      INTEGER NOT NULL,
  PRIMARY KEY (queue, state, minute)
) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES('default','cancelled',29921058,1);
INSERT INTO counters VALUES('default','completed',29921058,3);
INSERT INTO counters VALUES('default','failed',29921058,1);
INSERT INTO counters VALUES('default','failed',29921068,4);
CREATE TABLE dependencies (
  task_id INTEGER NOT NULL, -- waits
  on_id   INTEGER NOT NULL CHECK (on_id < task_id), -- for this older one: so there are no cycles
  whatever INTEGER NOT NULL, -- 1: however that ends; 0: only if it completes
  open    INTEGER NOT NULL, -- 1: it still waits
  PRIMARY KEY (task_id, on_id)
) STRICT, WITHOUT ROWID;
INSERT INTO dependencies VALUES(13,11,0,1);
INSERT INTO dependencies VALUES(14,11,1,1);
INSERT INTO dependencies VALUES(14,12,1,1);
CREATE TABLE inputs (
  task_id INTEGER PRIMARY KEY,
  data    BLOB NOT NULL CHECK (length(data) <= 16777216)
) STRICT;
INSERT INTO inputs VALUES(3,X'616263');
INSERT INTO inputs VALUES(22,X'00ff');
INSERT INTO inputs VALUES(23,X'616263');
CREATE TABLE limits (
  kind       TEXT NOT NULL CHECK (CASE kind WHEN 'queue' THEN 1 WHEN 'job' THEN 1 WHEN 'lane' THEN 1 ELSE 0 END),
  name       TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 200),
  running    INTEGER CHECK (running >= 1), -- at once; null: any number
  rate       INTEGER CHECK (rate >= 1),    -- starts per per; null: any number
  per        INTEGER CHECK (per >= 1),
  burst      INTEGER CHECK (burst >= 1),   -- starts at once after a quiet time
  level      INTEGER NOT NULL DEFAULT 0,   -- of the bucket at filled_at: a start takes per, each millisecond gives rate
  filled_at  INTEGER NOT NULL DEFAULT 0,
  due_at     INTEGER,                      -- of a lane: when its next task may have it; null: nothing waits for the rate
  updated_at INTEGER NOT NULL,             -- when somebody set it
  PRIMARY KEY (kind, name),
  CHECK ((rate IS NULL) = (per IS NULL) AND (rate IS NULL) = (burst IS NULL) AND (rate IS NOT NULL OR running IS NOT NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO limits VALUES('job','email.send',3,NULL,NULL,NULL,0,0,NULL,1795264110000);
INSERT INTO limits VALUES('lane','deploy',NULL,10,60000,10,600000,1795265254256,NULL,1795265254256);
INSERT INTO limits VALUES('queue','media',2,NULL,NULL,NULL,0,1795265301975,NULL,1795265301975);
CREATE TABLE output (
  task_id       INTEGER NOT NULL,
  generation_id INTEGER NOT NULL,           -- of the claim
  seq           INTEGER NOT NULL,
  attempt       INTEGER NOT NULL,
  stream        INTEGER NOT NULL,           -- 1 stdout, 2 stderr
  at            INTEGER NOT NULL,
  data          BLOB NOT NULL,
  dropped_bytes INTEGER NOT NULL DEFAULT 0, -- printed before this piece and after the last one, and not kept
  PRIMARY KEY (task_id, generation_id, seq)
) STRICT;
INSERT INTO output VALUES(1,2,1,1,2,1795263535805,X'6572720a',0);
INSERT INTO output VALUES(1,2,2,1,1,1795263535805,X'6f75740a',0);
INSERT INTO output VALUES(3,2,1,1,1,1795263535862,X'616263',0);
INSERT INTO output VALUES(16,4,1,1,1,1795264014100,X'68656c6c6fff0a',0);
INSERT INTO output VALUES(16,4,5,1,2,1795264014200,X'656e64',1999990);
CREATE TABLE pauses (
  queue     TEXT PRIMARY KEY,  -- its name; empty: the whole database, queues that come later too
  paused_at INTEGER NOT NULL,
  paused_by TEXT NOT NULL,     -- the user who asked
  reason    TEXT CHECK (reason IS NULL OR length(CAST(reason AS BLOB)) <= 8192) -- why, if they said so
) STRICT, WITHOUT ROWID;
INSERT INTO pauses VALUES('-deletion',1795264111000,'ann','an audit');
INSERT INTO pauses VALUES('media',1795263538847,'ann',NULL);
CREATE TABLE schedule_inputs (
  name TEXT PRIMARY KEY REFERENCES schedule_rows (name) ON DELETE CASCADE,
  data BLOB NOT NULL CHECK (length(data) <= 16777216)
) STRICT;
INSERT INTO schedule_inputs VALUES('full',X'0001ff');
CREATE TABLE schedule_open (
  schedule TEXT NOT NULL REFERENCES schedule_rows (name) ON DELETE CASCADE,
  task_id  INTEGER NOT NULL,
  PRIMARY KEY (schedule, task_id)
) STRICT, WITHOUT ROWID;
INSERT INTO schedule_open VALUES('full',29);
INSERT INTO schedule_open VALUES('nightly',6);
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
INSERT INTO schedule_rows VALUES('nightly','0 3 * * *','Europe/Berlin','skip','one',86400000,0,NULL,NULL,1795312800000,1795263538162,6,NULL,NULL,0,1795263538145,1795263538145,'{"job":"command","args":["true"],"queue":"default","priority":5,"max_attempts":1,"max_losses":3,"kill_after":10000,"backoff":"exponential","backoff_delay":10000,"backoff_max":3600000,"output_limit":1048576,"path":"/usr/bin/true","cwd":"/srv/app"}');
INSERT INTO schedule_rows VALUES('full','@every 90s','UTC','replace','all',3600000,5000,1795264105000,'ann',NULL,1795264100000,29,NULL,NULL,3,1795264099000,1795264105000,'{"job":"command","args":["deploy","ü"],"label":"a \"b\"","queue":"media","priority":0,"lane":"deploy","expires_in":60000,"max_attempts":4,"max_losses":0,"timeout":1000,"kill_after":0,"backoff":"fixed","backoff_delay":0,"backoff_max":1,"retry_on":"1-3","output_limit":0,"path":"/usr/bin/deploy","cwd":"/srv","env":{"A":"1","B":"\"\n"},"env_file":"/etc/x"}');
INSERT INTO schedule_rows VALUES('gone','@daily','UTC','allow','skip',86400000,0,NULL,NULL,1899936000000,1795264100000,30,'failed',12,0,1795264099000,1795264099000,'{"job":"email.send","args":null,"queue":"default","priority":5,"max_losses":3,"kill_after":10000,"backoff":"exponential","backoff_delay":10000,"backoff_max":3600000,"output_limit":1048576}');
CREATE TABLE steps (
  task_id       INTEGER NOT NULL,
  seq           INTEGER NOT NULL CHECK (seq >= 1), -- the order in which the function comes to them
  generation_id INTEGER NOT NULL,                  -- of the claim that did it
  name          TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 200),
  value         TEXT CHECK (value IS NULL OR json_valid(value) AND length(CAST(value AS BLOB)) <= 1048576), -- JSON: what it returned
  wake_at       INTEGER,                           -- of a sleep: when it ends
  at            INTEGER NOT NULL,                  -- when it ended, or when the sleep began
  PRIMARY KEY (task_id, seq)
) STRICT;
INSERT INTO steps VALUES(9,1,2,'look up','{"to":"ann@example.com"}',NULL,1795263538600);
INSERT INTO steps VALUES(9,2,2,'wait',NULL,1795263548600,1795263538600);
INSERT INTO steps VALUES(27,1,2,'charge','{"id":1}',NULL,1795264081500);
INSERT INTO steps VALUES(27,2,2,'wait',NULL,1899990000000,1795264082000);
CREATE TABLE tasks (
  id                  INTEGER PRIMARY KEY AUTOINCREMENT,     -- increasing, never reused
  generation_id       INTEGER NOT NULL DEFAULT 0 CHECK (generation_id >= 0), -- compare-and-swap token: +1 with every change of state or owner
  job                 TEXT NOT NULL DEFAULT 'command' CHECK (length(job) BETWEEN 1 AND 100), -- what it runs: command, or a registered function
  args                TEXT CHECK (args IS NULL OR json_valid(args) AND length(CAST(args AS BLOB)) <= 1048576), -- JSON: an argv, or a function's input
  label               TEXT CHECK (label IS NULL OR length(CAST(label AS BLOB)) <= 200), -- shown in lists before the job
  queue               TEXT NOT NULL DEFAULT 'default' CHECK (length(queue) BETWEEN 1 AND 100), -- named stream; queues take turns
  state               TEXT NOT NULL DEFAULT 'scheduled',     -- see the CHECK at the end
  reason              TEXT,                                  -- why the last attempt, or the task, ended otherwise than well
  priority            INTEGER NOT NULL DEFAULT 5 CHECK (priority BETWEEN -2147483648 AND 2147483647), -- higher runs first
  unique_key          TEXT CHECK (unique_key IS NULL OR length(CAST(unique_key AS BLOB)) <= 200), -- at most one unfinished task has it
  run_at              INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), -- when it is due
  expires_at          INTEGER,                               -- not started by then: cancelled, reason expired
  attempt             INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0), -- attempts started that count
  max_attempts        INTEGER CHECK (max_attempts >= 1),     -- null until the first claim: the job's own default
  losses              INTEGER NOT NULL DEFAULT 0 CHECK (losses BETWEEN 0 AND max_losses + 1), -- attempts whose worker was lost
  max_losses          INTEGER NOT NULL DEFAULT 3 CHECK (max_losses >= 0), -- beyond it: failed, reason lost
  timeout             INTEGER CHECK (timeout > 0),           -- of one attempt; null: none
  kill_after          INTEGER NOT NULL DEFAULT 10000 CHECK (kill_after >= 0), -- between TERM and KILL
  backoff             TEXT NOT NULL DEFAULT 'exponential' CHECK (CASE backoff WHEN 'exponential' THEN 1 WHEN 'linear' THEN 1 WHEN 'fixed' THEN 1 ELSE 0 END), -- how the delay grows
  backoff_delay       INTEGER NOT NULL DEFAULT 10000 CHECK (backoff_delay >= 0), -- after the first attempt
  backoff_max         INTEGER NOT NULL DEFAULT 3600000 CHECK (backoff_max >= 0), -- the delay's upper limit
  retry_on            TEXT,                                  -- exit codes worth another attempt, as in 75,100-111; null: any
  output_limit        INTEGER NOT NULL DEFAULT 1048576 CHECK (output_limit >= 0), -- bytes kept of an attempt's output
  path                TEXT CHECK (path IS NULL OR length(CAST(path AS BLOB)) <= 4096), -- of the program; null: looked up by the worker
  cwd                 TEXT CHECK (cwd IS NULL OR length(CAST(cwd AS BLOB)) <= 4096), -- null: the worker's
  env                 TEXT CHECK (env IS NULL OR json_valid(env) AND length(CAST(env AS BLOB)) <= 131072), -- JSON object of texts
  env_file            TEXT CHECK (env_file IS NULL OR length(CAST(env_file AS BLOB)) <= 4096), -- NAME=VALUE lines, read at each start
  input_bytes         INTEGER NOT NULL DEFAULT 0 CHECK (input_bytes >= 0), -- size of the row in inputs; 0: none
  worker_id           TEXT,                                  -- of the current or last attempt
  lease_expires_at    INTEGER,                               -- only while running; renewed by heartbeats
  cancel_requested_at INTEGER,                               -- someone wants the running attempt stopped
  cancel_now          INTEGER NOT NULL DEFAULT 0,            -- 1: without the grace of kill_after
  cancel_text         TEXT CHECK (cancel_text IS NULL OR length(CAST(cancel_text AS BLOB)) <= 8192), -- who and why: becomes the error of the cancelled task
  created_at          INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  created_by          TEXT,                                  -- the user who enqueued it
  updated_at          INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), -- last change of state or owner
  started_at          INTEGER,                               -- of the current or last attempt, as all below
  finished_at         INTEGER,                               -- of the task: set in the three finished states only
  duration            INTEGER,
  result              TEXT CHECK (result IS NULL OR json_valid(result) AND length(CAST(result AS BLOB)) <= 1048576), -- JSON
  error               TEXT CHECK (error IS NULL OR length(CAST(error AS BLOB)) <= 8192),
  exit_code           INTEGER,
  signal              INTEGER,
  output_bytes        INTEGER NOT NULL DEFAULT 0,            -- printed by the attempt, kept or not
  output_truncated    INTEGER NOT NULL DEFAULT 0,            -- 1: some of it was not kept
  progress            TEXT CHECK (progress IS NULL OR json_valid(progress)), schedule TEXT CHECK (schedule IS NULL OR length(schedule) BETWEEN 1 AND 100), tick INTEGER, after TEXT CHECK (after IS NULL OR json_valid(after) AND length(CAST(after AS BLOB)) <= 1048576), after_any TEXT CHECK (after_any IS NULL OR json_valid(after_any) AND length(CAST(after_any AS BLOB)) <= 1048576), lane TEXT CHECK (lane IS NULL OR length(CAST(lane AS BLOB)) BETWEEN 1 AND 200), waits INTEGER CHECK (waits IS NULL OR state = 'blocked'), input ANY -- text or BLOB
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
  CONSTRAINT "result: no NUL" CHECK (coalesce(instr(result, char(0)), 0) = 0), -- what a function reports
  -- Before the first claim max_attempts may be null, and then no attempt counts yet: no row of plain SQL may stop a claim of many. A null
  -- would pass every comparison.
  CHECK (CASE state
    WHEN 'scheduled' THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt < coalesce(max_attempts, 1)
    WHEN 'pending'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt < coalesce(max_attempts, 1)
    WHEN 'blocked'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt < coalesce(max_attempts, 1)
    WHEN 'running'   THEN lease_expires_at IS NOT NULL AND worker_id IS NOT NULL AND finished_at IS NULL AND attempt BETWEEN 1 AND coalesce(max_attempts, 0)
    WHEN 'retrying'  THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt < coalesce(max_attempts, 0)
    WHEN 'completed' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'failed'    THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'cancelled' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    ELSE 0 END)
) STRICT;
INSERT INTO tasks VALUES(1,3,'command','["sh","-c","echo out; echo err >&2; printf \"{\\\"n\\\":1}\" >\"$RUNNER_RESULT\""]','hello','default','completed',NULL,5,NULL,1795263534963,NULL,1,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/sh','/srv/app',NULL,NULL,0,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',NULL,NULL,0,NULL,1795263534963,'ann',1795263535819,1795263535725,1795263535813,13,'{"n":1}',NULL,0,NULL,8,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(2,6,'command','["sh","-c","exit 7"]',NULL,'default','failed','exit',5,NULL,1795263535848,NULL,2,2,0,3,NULL,10000,'fixed',0,3600000,'7',1048576,'/usr/bin/sh','/srv/app',NULL,NULL,0,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',NULL,NULL,0,NULL,1795263535013,'ann',1795263535878,1795263535863,1795263535875,3,NULL,'exit status 7',7,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(3,3,'command','["cat"]',NULL,'default','completed',NULL,5,NULL,1795263535211,NULL,1,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/cat','/srv/app','{"GREETING":"hé"}',NULL,3,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',NULL,NULL,0,NULL,1795263535211,'ann',1795263535871,1795263535819,1795263535863,15,NULL,NULL,0,NULL,3,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(4,3,'command','["true"]',NULL,'default','completed',NULL,9,NULL,1795263535351,NULL,1,1,0,0,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/true','/srv/app',NULL,NULL,0,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',NULL,NULL,0,NULL,1795263535351,'ann',1795263535806,1795263535725,1795263535806,9,NULL,NULL,0,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(5,2,'command','["sleep","1000"]',NULL,'default','running',NULL,5,NULL,1795263536048,NULL,1,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/sleep','/srv/app',NULL,NULL,0,'01a1fe0b-9c39-7a9a-9df0-c97336f746a1',1795263542918,NULL,0,NULL,1795263536048,'ann',1795263536256,1795263536256,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(6,1,'command','["true"]',NULL,'default','pending',NULL,5,NULL,1795263538162,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/true','/srv/app',NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795263538162,'ann',1795263538162,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,'nightly',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(7,1,'command','["echo","media"]',NULL,'media','pending',NULL,7,NULL,1795263538202,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/echo','/srv/app',NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795263538202,'ann',1795263538202,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(8,1,'command','["echo","later"]',NULL,'default','scheduled',NULL,5,'key',1795264138268,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/echo','/srv/app',NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795263538268,'ann',1795263538268,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(9,1,'email.send','{"to":"ann"}',NULL,'default','pending',NULL,5,NULL,1795263538505,1795267138505,0,NULL,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795263538505,'ann',1795263538505,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(10,2,'command','["echo","never"]',NULL,'default','cancelled','cancelled',5,NULL,1795263538586,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/echo','/srv/app',NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795263538586,'ann',1795263538775,NULL,1795263538775,NULL,NULL,'cancelled by ann',NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(11,1,'command','["echo","first"]',NULL,'default','pending',NULL,5,NULL,1795265217449,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/echo','/srv/app',NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795265217449,'ann',1795265217449,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,'deploy',NULL,NULL);
INSERT INTO tasks VALUES(12,1,'command','["echo","second"]',NULL,'default','blocked',NULL,5,NULL,1795265217488,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/echo','/srv/app',NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795265217488,'ann',1795265217488,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,'deploy',0,NULL);
INSERT INTO tasks VALUES(13,1,'command','["echo","third"]',NULL,'default','blocked',NULL,5,NULL,1795265217516,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/echo','/srv/app',NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795265217516,'ann',1795265217516,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,'[11]',NULL,NULL,1,NULL);
INSERT INTO tasks VALUES(14,1,'command','["echo","fourth"]',NULL,'default','blocked',NULL,5,NULL,1795265217541,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/echo','/srv/app',NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795265217541,'ann',1795265217541,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,'[11,12]',NULL,1,NULL);
INSERT INTO tasks VALUES(15,3,'email.send','{"to":"a@example.com","n":1.50}','say "hi" ☃','default','completed',NULL,-7,NULL,1795264000000,NULL,1,10,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,'01a1fe0b-0000-7000-8000-00000000dead',NULL,1795264003000,1,'cancelled by ann: too "late"',1795264000000,'ann',1795264004100,1795264001000,1795264004000,2500,'{"ok":[1,null,"\u00e9"]}',NULL,NULL,NULL,0,0,'{"done":3,"of":4}',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(16,5,'command','["job.sh","a b"]',NULL,'default','retrying','exit',5,'once',1899990000000,1899999000000,2,5,1,2,300000,0,'linear',1500,0,'75,100-111',0,'/srv/bin/job.sh','/srv/"app"','{"A":"1","B":"x=y \"z\" ü"}','/etc/job.env',0,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',NULL,NULL,0,NULL,1795264010000,'bob',1795264015000,1795264014000,NULL,900,NULL,'exit status 75',75,NULL,2000000,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(17,3,'command','["sleep","1"]',NULL,'default','running',NULL,5,NULL,1795264020000,NULL,1,1,0,0,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,'01a1fe0b-9c39-7a9a-9df0-c97336f746a1',0,NULL,0,NULL,1795264020000,NULL,1795264021000,1795264021000,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(18,2,'email.send','7',NULL,'default','running',NULL,5,NULL,1795264030000,NULL,1,10,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,'01a1fe0b-9c39-7a9a-9df0-c97336f746a1',1795264095000,1795264035000,0,'cancelled by bob',1795264030000,NULL,1795264031000,1795264031000,NULL,NULL,NULL,NULL,NULL,NULL,0,0,'"half"',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(19,4,'command','["crash"]',NULL,'default','failed','signal',5,NULL,1795264040000,NULL,1,1,1,0,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',NULL,NULL,0,NULL,1795264040000,NULL,1795264042000,1795264041000,1795264042000,1001,NULL,'killed by signal 9',NULL,9,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(20,0,'command','["echo","20"]',NULL,'default','scheduled',NULL,5,NULL,1795264050000,NULL,0,NULL,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795384732432,NULL,1795384732432,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,'[1, 3]','[1,2]',NULL,NULL,NULL);
INSERT INTO tasks VALUES(21,0,'command','["echo","21"]',NULL,'default','scheduled',NULL,5,NULL,1795264050000,NULL,0,NULL,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795384732433,NULL,1795384732433,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,'[2]',NULL,'plain',NULL,NULL);
INSERT INTO tasks VALUES(22,0,'command','["cat"]',NULL,'default','scheduled',NULL,5,NULL,1899990000000,NULL,0,NULL,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,2,NULL,NULL,NULL,0,NULL,1795384732433,NULL,1795384732433,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,'[16]',NULL,NULL,NULL);
INSERT INTO tasks VALUES(23,1,'command','["cat"]',NULL,'default','scheduled',NULL,5,NULL,1899990000000,NULL,0,NULL,0,3,5000,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,'{"a": "b"}',NULL,3,NULL,NULL,NULL,0,NULL,1795384732434,NULL,1795384732434,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,'plain',NULL,NULL);
INSERT INTO tasks VALUES(24,1,'command','["./x"]',NULL,'default','scheduled',NULL,5,NULL,1899990000000,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,CAST(X'2F746D702FFF2F78' AS TEXT),CAST(X'2F746D702FC3' AS TEXT),NULL,CAST(X'EDA08061' AS TEXT),0,NULL,NULL,NULL,0,NULL,1795264060000,NULL,1795264060000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(25,1,'command','["./x"]',NULL,'default','scheduled',NULL,5,NULL,1899990000000,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/tmp/ü/☃/𝄞',CAST(X'2FE282' AS TEXT),NULL,'/tmp/�',0,NULL,NULL,NULL,0,NULL,1795264060000,NULL,1795264060000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(26,2,'command','["late"]',NULL,'default','cancelled','expired',5,NULL,1795264070000,1795264071000,0,NULL,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795264070000,NULL,1795264071500,NULL,1795264071500,NULL,NULL,'not started in time',NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(27,3,'email.send',NULL,NULL,'default','retrying',NULL,5,NULL,1899990000000,NULL,0,10,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',NULL,NULL,0,NULL,1795264080000,NULL,1795264082000,1795264081000,NULL,1000,NULL,NULL,NULL,NULL,0,0,'1',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(28,4,'command','["again"]',NULL,'default','scheduled',NULL,5,NULL,1899990000000,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,NULL,NULL,NULL,NULL,0,'01a1fe0b-9a02-7846-96b1-8cd09df0d688',NULL,NULL,0,NULL,1795264090000,NULL,1795264092000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(29,1,'command','["deploy"]',NULL,'default','blocked',NULL,5,NULL,1795264100000,NULL,0,1,0,3,NULL,10000,'exponential',10000,3600000,NULL,1048576,'/usr/bin/deploy','/srv',NULL,NULL,0,NULL,NULL,NULL,0,NULL,1795264100000,NULL,1795264100000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,'full',1795264100000,NULL,NULL,'deploy',0,NULL);
CREATE TABLE workers (
  id         TEXT PRIMARY KEY, -- random, never reused
  name       TEXT NOT NULL,    -- for people
  host       TEXT NOT NULL,
  boot_id    TEXT NOT NULL,    -- of the host's kernel; empty where there is none
  pid        INTEGER NOT NULL,
  user       TEXT NOT NULL,
  version    TEXT NOT NULL,
  slots      INTEGER NOT NULL, -- attempts at once
  queues     TEXT,             -- JSON array of {queue, max}; null: all
  jobs       TEXT NOT NULL,    -- JSON array of the jobs it can run
  state      TEXT NOT NULL,    -- ready or draining
  lease      INTEGER NOT NULL, -- length of its leases
  started_at INTEGER NOT NULL,
  beat_at    INTEGER NOT NULL, -- last heartbeat
  ended_at   INTEGER           -- null while it lives
, uid INTEGER NOT NULL DEFAULT -1, pid_namespace TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;
INSERT INTO workers VALUES('01a1fe0b-9a02-7846-96b1-8cd09df0d688','first','web1','3c3a7c0e-0d4e-4a52-8a76-000000000001',31935,'ann','0.1.0',2,NULL,'["command"]','ready',60000,1795263535618,1795263535906,1795263535906,1000,'pid:[4026531836]');
INSERT INTO workers VALUES('01a1fe0b-9c39-7a9a-9df0-c97336f746a1','dead','web1','3c3a7c0e-0d4e-4a52-8a76-000000000001',32241,'ann','0.1.0',2,NULL,'["command"]','ready',5000,1795263536185,1795263537918,NULL,1000,'pid:[4026531836]');
CREATE TABLE totals (
  queue  TEXT NOT NULL,
  job    TEXT NOT NULL,
  result TEXT NOT NULL,    -- how attempts ended: completed, or the reason
  n      INTEGER NOT NULL,
  PRIMARY KEY (queue, job, result)
) STRICT, WITHOUT ROWID;
INSERT INTO totals VALUES('default','email.send','completed',77);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('tasks',33);
CREATE INDEX tasks_pending ON tasks (queue, job, priority DESC) WHERE state = 'pending';
CREATE INDEX tasks_due ON tasks (run_at, queue, state) WHERE state = 'scheduled' OR state = 'retrying';
CREATE INDEX tasks_running ON tasks (worker_id) WHERE state = 'running';
CREATE INDEX tasks_expiry ON tasks (expires_at) WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL;
CREATE UNIQUE INDEX tasks_unique ON tasks (unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL;
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_failed ON tasks (finished_at) WHERE state = 'failed';
CREATE INDEX workers_live ON workers (beat_at) WHERE ended_at IS NULL;
CREATE INDEX tasks_lost ON tasks (queue, job, priority DESC) WHERE losses >= 1 AND finished_at IS NULL;
CREATE UNIQUE INDEX tasks_tick ON tasks (schedule, tick) WHERE schedule IS NOT NULL;
CREATE INDEX schedules_next ON schedule_rows (next_at) WHERE next_at IS NOT NULL;
CREATE VIEW schedules AS
SELECT s.name, s.cron, s.zone, s.overlap, s.catch_up, s.catch_up_window, s.jitter, s.paused_at IS NOT NULL AS paused, s.next_at, s.last_at,
  s.last_task_id, coalesce(t.state, s.kept_state) AS last_state, iif(t.id IS NULL, s.kept_duration, t.duration) AS last_duration, s.skipped,
  s.task, s.created_at, s.updated_at, s.paused_at, s.paused_by
FROM schedule_rows AS s LEFT JOIN tasks AS t ON t.id = s.last_task_id;
CREATE VIEW attempts AS
SELECT task_id, generation_id, attempt, state, reason, counted, worker_id, started_at, finished_at, duration, exit_code, signal, error,
  output_bytes, output_truncated FROM attempt_rows
UNION ALL
SELECT id, generation_id - 1, attempt, 'completed', NULL, 1, worker_id, started_at, finished_at, coalesce(duration, 0), exit_code, NULL, NULL,
  output_bytes, output_truncated FROM tasks WHERE state = 'completed' AND worker_id IS NOT NULL AND started_at IS NOT NULL;
CREATE UNIQUE INDEX tasks_lane ON tasks (lane) WHERE lane IS NOT NULL AND (state = 'pending' OR state = 'running' OR state = 'retrying');
CREATE INDEX tasks_blocked ON tasks (lane, waits, priority DESC, id, queue) WHERE waits IS NOT NULL;
CREATE INDEX dependencies_on ON dependencies (on_id, open, task_id, whatever);
CREATE INDEX dependencies_open ON dependencies (task_id) WHERE open = 1;
CREATE INDEX limits_due ON limits (due_at) WHERE due_at IS NOT NULL;
CREATE TRIGGER schedules_keep BEFORE DELETE ON tasks WHEN OLD.schedule IS NOT NULL BEGIN
  UPDATE schedule_rows SET kept_state = OLD.state, kept_duration = OLD.duration WHERE name = OLD.schedule AND last_task_id = OLD.id; END;
CREATE TRIGGER tasks_reopened AFTER UPDATE OF run_at, losses, expires_at ON tasks
WHEN OLD.state = 'completed' AND NEW.state <> 'completed' AND OLD.worker_id IS NOT NULL AND OLD.started_at IS NOT NULL
BEGIN
  INSERT OR IGNORE INTO attempt_rows (task_id, generation_id, attempt, state, counted, worker_id, started_at, finished_at, duration, exit_code,
    output_bytes, output_truncated)
  VALUES (OLD.id, OLD.generation_id - 1, OLD.attempt, 'completed', 1, OLD.worker_id, OLD.started_at, OLD.finished_at, coalesce(OLD.duration, 0),
    OLD.exit_code, OLD.output_bytes, OLD.output_truncated);
END;
CREATE TRIGGER tasks_id BEFORE INSERT ON tasks
WHEN NEW.id <> -1 AND (NEW.generation_id = 0 OR NEW.id NOT BETWEEN 1 AND 4503599627370496) OR NEW.generation_id > 4503599627370496
BEGIN
  SELECT RAISE(ABORT, 'id, generation_id: leave them out, the database gives them');
END;
CREATE TRIGGER tasks_id_kept BEFORE UPDATE OF id ON tasks WHEN NEW.id <> OLD.id
BEGIN
  SELECT RAISE(ABORT, 'id: it cannot be changed');
END;
CREATE TRIGGER tasks_plain AFTER INSERT ON tasks WHEN NEW.generation_id = 0
BEGIN
  UPDATE tasks SET input = input WHERE id = NEW.id;
END;
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
COMMIT;
