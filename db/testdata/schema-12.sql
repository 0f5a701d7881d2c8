-- A database of schema 12: that of schema 11 as runner converted it. upgrade_test.go says what is in it.
PRAGMA foreign_keys = OFF;
PRAGMA application_id = 1383427698;
PRAGMA user_version = 12;
BEGIN TRANSACTION;
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
CREATE TABLE totals (
  queue  TEXT NOT NULL,
  job    TEXT NOT NULL,
  result TEXT NOT NULL,    -- how attempts ended: completed, or the reason
  n      INTEGER NOT NULL,
  PRIMARY KEY (queue, job, result)
) STRICT, WITHOUT ROWID;
INSERT INTO totals VALUES('default','email.send','completed',77);
CREATE TABLE tasks (
  id               INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 9007199254740992), -- increasing, never reused: see last_ids
  generation_id    INTEGER NOT NULL CHECK (generation_id BETWEEN 0 AND 4503599627370496), -- compare-and-swap token: +1 with every change of state or owner
  state            TEXT NOT NULL,              -- see the CHECK at the end
  queue            TEXT NOT NULL,
  job              TEXT NOT NULL,              -- what it runs: command, or a registered function
  args             TEXT,                       -- JSON: an argv, or the input of a function
  label            TEXT,                       -- for people; lists show it before the job
  priority         INTEGER NOT NULL CHECK (priority BETWEEN -2147483648 AND 2147483647), -- higher runs first
  run_at           INTEGER NOT NULL,           -- when it is due
  expires_at       INTEGER,                    -- not started by then: cancelled
  attempt          INTEGER NOT NULL DEFAULT 0, -- attempts started that count
  max_attempts     INTEGER CHECK (max_attempts BETWEEN 1 AND 2147483647), -- NULL until the first claim: the default of the job
  losses           INTEGER NOT NULL DEFAULT 0, -- attempts whose worker was lost
  max_losses       INTEGER NOT NULL CHECK (max_losses BETWEEN 0 AND 2147483647 AND losses BETWEEN 0 AND max_losses + 1), -- beyond it: failed
  worker           INTEGER,                    -- of the current or last attempt: a number of workers
  lease_expires_at INTEGER,                    -- while it runs; heartbeats renew it; 0: the claim is revoked
  unique_key       TEXT,                       -- at most one unfinished task has it
  lane             TEXT,                       -- tasks of a lane run one at a time
  schedule         TEXT,                       -- the schedule that enqueued it
  tick             INTEGER,                    -- the tick of schedule; NULL: it was run by hand
  waits            INTEGER CHECK (waits IS NULL OR state = 'blocked'), -- of a blocked task: 1 for other tasks, 0 for its lane only
  parts            INTEGER,                    -- what other tables hold of it: 1 inputs, 2 dependencies, 3 both; NULL: neither
  created_at       INTEGER NOT NULL,
  created_by       TEXT,                       -- the user who enqueued it
  updated_at       INTEGER NOT NULL,           -- last change of state or owner
  started_at       INTEGER,                    -- of the current or last attempt
  finished_at      INTEGER,                    -- of the task: set in the three finished states only
  options          TEXT CHECK (options IS NULL OR json_valid(options)), -- JSON object: jobs.Options; NULL: all defaults
  outcome          TEXT CHECK (outcome IS NULL OR json_valid(outcome)), -- JSON object: how the last attempt ended; NULL: nothing to say
  result           TEXT,                       -- JSON: what the last attempt returned
  CHECK (CASE state
    WHEN 'scheduled' THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 1) - 1
    WHEN 'pending'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 1) - 1
    WHEN 'blocked'   THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 1) - 1
    WHEN 'running'   THEN lease_expires_at BETWEEN 0 AND 253402300799999 AND worker IS NOT NULL AND finished_at IS NULL AND attempt BETWEEN 1 AND coalesce(max_attempts, 0)
    WHEN 'retrying'  THEN lease_expires_at IS NULL AND finished_at IS NULL AND attempt BETWEEN 0 AND coalesce(max_attempts, 0) - 1
    WHEN 'completed' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'failed'    THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    WHEN 'cancelled' THEN lease_expires_at IS NULL AND finished_at IS NOT NULL
    ELSE 0 END)
) STRICT;
INSERT INTO tasks VALUES(1,3,'completed','default','command','["sh","-c","echo out; echo err >&2; printf \"{\\\"n\\\":1}\" >\"$RUNNER_RESULT\""]','hello',5,1795263534963,NULL,1,1,0,3,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795263534963,'ann',1795263535819,1795263535725,1795263535813,'{"path":"/usr/bin/sh","cwd":"/srv/app"}','{"exit_code":0,"duration":13,"output_bytes":8}','{"n":1}');
INSERT INTO tasks VALUES(2,6,'failed','default','command','["sh","-c","exit 7"]',NULL,5,1795263535848,NULL,2,2,0,3,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795263535013,'ann',1795263535878,1795263535863,1795263535875,'{"backoff":"fixed","backoff_delay":0,"retry_on":"7","path":"/usr/bin/sh","cwd":"/srv/app"}','{"reason":"exit","error":"exit status 7","exit_code":7,"duration":3}',NULL);
INSERT INTO tasks VALUES(3,3,'completed','default','command','["cat"]',NULL,5,1795263535211,NULL,1,1,0,3,1,NULL,NULL,NULL,NULL,NULL,NULL,1,1795263535211,'ann',1795263535871,1795263535819,1795263535863,'{"path":"/usr/bin/cat","cwd":"/srv/app","env":{"GREETING":"h√©"}}','{"exit_code":0,"duration":15,"output_bytes":3}',NULL);
INSERT INTO tasks VALUES(4,3,'completed','default','command','["true"]',NULL,9,1795263535351,NULL,1,1,0,0,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795263535351,'ann',1795263535806,1795263535725,1795263535806,'{"path":"/usr/bin/true","cwd":"/srv/app"}','{"exit_code":0,"duration":9}',NULL);
INSERT INTO tasks VALUES(5,2,'running','default','command','["sleep","1000"]',NULL,5,1795263536048,NULL,1,1,0,3,2,1795263542918,NULL,NULL,NULL,NULL,NULL,NULL,1795263536048,'ann',1795263536256,1795263536256,NULL,'{"path":"/usr/bin/sleep","cwd":"/srv/app"}',NULL,NULL);
INSERT INTO tasks VALUES(6,1,'pending','default','command','["true"]',NULL,5,1795263538162,NULL,0,1,0,3,NULL,NULL,NULL,NULL,'nightly',NULL,NULL,NULL,1795263538162,'ann',1795263538162,NULL,NULL,'{"path":"/usr/bin/true","cwd":"/srv/app"}',NULL,NULL);
INSERT INTO tasks VALUES(7,1,'pending','media','command','["echo","media"]',NULL,7,1795263538202,NULL,0,1,0,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795263538202,'ann',1795263538202,NULL,NULL,'{"path":"/usr/bin/echo","cwd":"/srv/app"}',NULL,NULL);
INSERT INTO tasks VALUES(8,1,'scheduled','default','command','["echo","later"]',NULL,5,1795264138268,NULL,0,1,0,3,NULL,NULL,'key',NULL,NULL,NULL,NULL,NULL,1795263538268,'ann',1795263538268,NULL,NULL,'{"path":"/usr/bin/echo","cwd":"/srv/app"}',NULL,NULL);
INSERT INTO tasks VALUES(9,1,'pending','default','email.send','{"to":"ann"}',NULL,5,1795263538505,1795267138505,0,NULL,0,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795263538505,'ann',1795263538505,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(10,2,'cancelled','default','command','["echo","never"]',NULL,5,1795263538586,NULL,0,1,0,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795263538586,'ann',1795263538775,NULL,1795263538775,'{"path":"/usr/bin/echo","cwd":"/srv/app"}','{"reason":"cancelled","error":"cancelled by ann"}',NULL);
INSERT INTO tasks VALUES(11,1,'pending','default','command','["echo","first"]',NULL,5,1795265217449,NULL,0,1,0,3,NULL,NULL,NULL,'deploy',NULL,NULL,NULL,NULL,1795265217449,'ann',1795265217449,NULL,NULL,'{"path":"/usr/bin/echo","cwd":"/srv/app"}',NULL,NULL);
INSERT INTO tasks VALUES(12,1,'blocked','default','command','["echo","second"]',NULL,5,1795265217488,NULL,0,1,0,3,NULL,NULL,NULL,'deploy',NULL,NULL,0,NULL,1795265217488,'ann',1795265217488,NULL,NULL,'{"path":"/usr/bin/echo","cwd":"/srv/app"}',NULL,NULL);
INSERT INTO tasks VALUES(13,1,'blocked','default','command','["echo","third"]',NULL,5,1795265217516,NULL,0,1,0,3,NULL,NULL,NULL,NULL,NULL,NULL,1,2,1795265217516,'ann',1795265217516,NULL,NULL,'{"path":"/usr/bin/echo","cwd":"/srv/app"}',NULL,NULL);
INSERT INTO tasks VALUES(14,1,'blocked','default','command','["echo","fourth"]',NULL,5,1795265217541,NULL,0,1,0,3,NULL,NULL,NULL,NULL,NULL,NULL,1,2,1795265217541,'ann',1795265217541,NULL,NULL,'{"path":"/usr/bin/echo","cwd":"/srv/app"}',NULL,NULL);
INSERT INTO tasks VALUES(15,3,'completed','default','email.send','{"to":"a@example.com","n":1.50}','say "hi" ‚òÉ',-7,1795264000000,NULL,1,10,0,3,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795264000000,'ann',1795264004100,1795264001000,1795264004000,NULL,'{"duration":2500}','{"ok":[1,null,"\u00e9"]}');
INSERT INTO tasks VALUES(16,5,'retrying','default','command','["job.sh","a b"]',NULL,5,1899990000000,1899999000000,2,5,1,2,1,NULL,'once',NULL,NULL,NULL,NULL,NULL,1795264010000,'bob',1795264015000,1795264014000,NULL,'{"timeout":300000,"kill_after":0,"backoff":"linear","backoff_delay":1500,"backoff_max":0,"retry_on":"75,100-111","output_limit":0,"path":"/srv/bin/job.sh","cwd":"/srv/\"app\"","env":{"A":"1","B":"x=y \"z\" √º"},"env_file":"/etc/job.env"}','{"reason":"exit","error":"exit status 75","exit_code":75,"duration":900,"output_bytes":2000000,"output_truncated":true}',NULL);
INSERT INTO tasks VALUES(17,3,'running','default','command','["sleep","1"]',NULL,5,1795264020000,NULL,1,1,0,0,2,0,NULL,NULL,NULL,NULL,NULL,NULL,1795264020000,NULL,1795264021000,1795264021000,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(18,2,'running','default','email.send','7',NULL,5,1795264030000,NULL,1,10,0,3,2,1795264095000,NULL,NULL,NULL,NULL,NULL,NULL,1795264030000,NULL,1795264031000,1795264031000,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(19,4,'failed','default','command','["crash"]',NULL,5,1795264040000,NULL,1,1,1,0,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795264040000,NULL,1795264042000,1795264041000,1795264042000,NULL,'{"reason":"signal","error":"killed by signal 9","signal":9,"duration":1001}',NULL);
INSERT INTO tasks VALUES(20,0,'scheduled','default','command','["echo","20"]',NULL,5,1795264050000,NULL,0,NULL,0,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,2,1795384732432,NULL,1795384732432,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(21,0,'scheduled','default','command','["echo","21"]',NULL,5,1795264050000,NULL,0,NULL,0,3,NULL,NULL,NULL,'plain',NULL,NULL,NULL,2,1795384732433,NULL,1795384732433,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(22,0,'scheduled','default','command','["cat"]',NULL,5,1899990000000,NULL,0,NULL,0,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,3,1795384732433,NULL,1795384732433,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(23,1,'scheduled','default','command','["cat"]',NULL,5,1899990000000,NULL,0,NULL,0,3,NULL,NULL,NULL,'plain',NULL,NULL,NULL,1,1795384732434,NULL,1795384732434,NULL,NULL,'{"timeout":5000,"env":{"a":"b"}}',NULL,NULL);
INSERT INTO tasks VALUES(24,1,'scheduled','default','command','["./x"]',NULL,5,1899990000000,NULL,0,1,0,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795264060000,NULL,1795264060000,NULL,NULL,'{"path":"/tmp/ˇ/x","cwd":"/tmp/√","env_file":"Ì†Äa"}',NULL,NULL);
INSERT INTO tasks VALUES(25,1,'scheduled','default','command','["./x"]',NULL,5,1899990000000,NULL,0,1,0,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795264060000,NULL,1795264060000,NULL,NULL,'{"path":"/tmp/√º/‚òÉ/ùÑû","cwd":"/‚Ç","env_file":"/tmp/ÔøΩ"}',NULL,NULL);
INSERT INTO tasks VALUES(26,2,'cancelled','default','command','["late"]',NULL,5,1795264070000,1795264071000,0,NULL,0,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795264070000,NULL,1795264071500,NULL,1795264071500,NULL,'{"reason":"expired","error":"not started in time"}',NULL);
INSERT INTO tasks VALUES(27,3,'retrying','default','email.send',NULL,NULL,5,1899990000000,NULL,0,10,0,3,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795264080000,NULL,1795264082000,1795264081000,NULL,NULL,'{"duration":1000}',NULL);
INSERT INTO tasks VALUES(28,4,'scheduled','default','command','["again"]',NULL,5,1899990000000,NULL,0,1,0,3,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795264090000,NULL,1795264092000,NULL,NULL,NULL,NULL,NULL);
INSERT INTO tasks VALUES(29,1,'blocked','default','command','["deploy"]',NULL,5,1795264100000,NULL,0,1,0,3,NULL,NULL,NULL,'deploy','full',1795264100000,0,NULL,1795264100000,NULL,1795264100000,NULL,NULL,'{"path":"/usr/bin/deploy","cwd":"/srv"}',NULL,NULL);
CREATE TABLE last_ids (
  id INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 4503599627370495)
) STRICT;
INSERT INTO last_ids VALUES(33);
CREATE TABLE cancel_requests (
  task_id       INTEGER PRIMARY KEY,
  generation_id INTEGER NOT NULL,
  requested_at  INTEGER NOT NULL,
  now           INTEGER NOT NULL, -- 1: without the grace of kill_after
  text          TEXT              -- who and why: becomes the error of the task
) STRICT;
INSERT INTO cancel_requests VALUES(15,2,1795264003000,1,'cancelled by ann: too "late"');
INSERT INTO cancel_requests VALUES(18,2,1795264035000,0,'cancelled by bob');
CREATE TABLE progress_reports (
  task_id       INTEGER PRIMARY KEY,
  generation_id INTEGER NOT NULL,
  report        TEXT NOT NULL     -- JSON
) STRICT;
INSERT INTO progress_reports VALUES(15,2,'{"done":3,"of":4}');
INSERT INTO progress_reports VALUES(18,2,'"half"');
INSERT INTO progress_reports VALUES(27,2,'1');
CREATE TABLE attempts (
  task_id       INTEGER NOT NULL,
  generation_id INTEGER NOT NULL, -- of the claim
  attempt       INTEGER NOT NULL, -- a lost one and its repeat share a number
  state         TEXT NOT NULL,    -- completed, failed, cancelled or snoozed
  counted       INTEGER NOT NULL, -- 0: lost, given back or snoozed
  worker        INTEGER NOT NULL,
  started_at    INTEGER NOT NULL,
  finished_at   INTEGER NOT NULL,
  outcome       TEXT CHECK (outcome IS NULL OR json_valid(outcome)), -- as in tasks
  PRIMARY KEY (task_id, generation_id)
) STRICT, WITHOUT ROWID;
INSERT INTO attempts VALUES(2,2,1,'failed',1,1,1795263535806,1795263535843,'{"reason":"exit","error":"exit status 7","exit_code":7,"duration":24}');
INSERT INTO attempts VALUES(2,5,2,'failed',1,1,1795263535863,1795263535875,'{"reason":"exit","error":"exit status 7","exit_code":7,"duration":3}');
INSERT INTO attempts VALUES(16,2,1,'failed',0,3,1795264011000,1795264012000,'{"reason":"lost","error":"its worker was lost"}');
INSERT INTO attempts VALUES(16,4,1,'failed',1,1,1795264014000,1795264015000,'{"reason":"exit","error":"exit status 75","exit_code":75,"duration":900,"output_bytes":2000000,"output_truncated":true}');
INSERT INTO attempts VALUES(19,2,1,'failed',1,1,1795264041000,1795264042000,'{"reason":"signal","error":"killed by signal 9","signal":9,"duration":1001}');
INSERT INTO attempts VALUES(27,2,1,'snoozed',0,1,1795264081000,1795264082000,NULL);
INSERT INTO attempts VALUES(28,2,1,'completed',1,1,1795264091000,1795264091000,'{"exit_code":0}');
CREATE TABLE dependencies (
  task_id     INTEGER NOT NULL, -- waits
  on_id       INTEGER NOT NULL CHECK (on_id < task_id), -- for this older one: so there are no cycles
  any_outcome INTEGER NOT NULL, -- 1: however that ends; 0: only if it completes
  open        INTEGER NOT NULL, -- 1: it still waits
  PRIMARY KEY (task_id, on_id)
) STRICT, WITHOUT ROWID;
INSERT INTO dependencies VALUES(20,1,0,1);
INSERT INTO dependencies VALUES(20,2,1,1);
INSERT INTO dependencies VALUES(21,2,0,1);
INSERT INTO dependencies VALUES(20,3,0,1);
INSERT INTO dependencies VALUES(13,11,0,1);
INSERT INTO dependencies VALUES(14,11,1,1);
INSERT INTO dependencies VALUES(14,12,1,1);
INSERT INTO dependencies VALUES(22,16,1,1);
CREATE TABLE pauses (
  queue     TEXT PRIMARY KEY,  -- its name; empty: the whole database, queues that come later too; -deletion: nothing is deleted
  paused_at INTEGER NOT NULL,
  paused_by TEXT NOT NULL,     -- the user who asked
  reason    TEXT CHECK (reason IS NULL OR length(CAST(reason AS BLOB)) <= 8192) -- why, if they said so
) STRICT, WITHOUT ROWID;
INSERT INTO pauses VALUES('-deletion',1795264111000,'ann','an audit');
INSERT INTO pauses VALUES('media',1795263538847,'ann',NULL);
CREATE TABLE workers (
  number        INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE, -- random, never reused
  name          TEXT NOT NULL,        -- for people
  host          TEXT NOT NULL,
  boot_id       TEXT NOT NULL,        -- of the host's kernel; empty where there is none
  pid           INTEGER NOT NULL,
  user          TEXT NOT NULL,
  version       TEXT NOT NULL,
  slots         INTEGER NOT NULL,     -- attempts at once
  queues        TEXT,                 -- JSON array of {queue, max}; null: all
  jobs          TEXT NOT NULL,        -- JSON array of the jobs it can run
  state         TEXT NOT NULL,        -- ready or draining
  lease         INTEGER NOT NULL,     -- length of its leases
  started_at    INTEGER NOT NULL,
  beat_at       INTEGER NOT NULL,     -- last heartbeat
  ended_at      INTEGER,              -- null while it lives
  uid           INTEGER NOT NULL DEFAULT -1,     -- whose processes others can look at and kill; -1: not known
  pid_namespace TEXT NOT NULL DEFAULT ''         -- in which pid counts, as the kernel names it; empty: not known
) STRICT;
INSERT INTO workers VALUES(1,'01a1fe0b-9a02-7846-96b1-8cd09df0d688','first','web1','3c3a7c0e-0d4e-4a52-8a76-000000000001',31935,'ann','0.1.0',2,NULL,'["command"]','ready',60000,1795263535618,1795263535906,1795263535906,1000,'pid:[4026531836]');
INSERT INTO workers VALUES(2,'01a1fe0b-9c39-7a9a-9df0-c97336f746a1','dead','web1','3c3a7c0e-0d4e-4a52-8a76-000000000001',32241,'ann','0.1.0',2,NULL,'["command"]','ready',5000,1795263536185,1795263537918,NULL,1000,'pid:[4026531836]');
INSERT INTO workers VALUES(3,'01a1fe0b-0000-7000-8000-00000000dead','','','',0,'','',0,NULL,'[]','draining',0,1795264004000,1795264012000,1795264012000,-1,'');
CREATE TABLE counter_hours (
  queue TEXT NOT NULL,
  state TEXT NOT NULL,
  hour  INTEGER NOT NULL, -- since 1970
  n     INTEGER NOT NULL,
  PRIMARY KEY (queue, state, hour)
) STRICT, WITHOUT ROWID;
INSERT INTO counter_hours VALUES('default','completed',498600,1234);
CREATE TABLE schedules (
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
  task            TEXT NOT NULL CHECK (json_valid(task)),    -- what is enqueued: a JSON object
  CHECK (paused_at IS NULL OR next_at IS NULL)
) STRICT;
INSERT INTO schedules VALUES('full','@every 90s','UTC','replace','all',3600000,5000,1795264105000,'ann',NULL,1795264100000,29,NULL,NULL,3,1795264099000,1795264105000,'{"job":"command","args":["deploy","√º"],"label":"a \"b\"","queue":"media","priority":0,"lane":"deploy","expires_in":60000,"max_attempts":4,"max_losses":0,"options":{"timeout":1000,"kill_after":0,"backoff":"fixed","backoff_delay":0,"backoff_max":1,"retry_on":"1-3","output_limit":0,"path":"/usr/bin/deploy","cwd":"/srv","env":{"A":"1","B":"\"\n"},"env_file":"/etc/x"}}');
INSERT INTO schedules VALUES('gone','@daily','UTC','allow','skip',86400000,0,NULL,NULL,1899936000000,1795264100000,30,'failed',12,0,1795264099000,1795264099000,'{"job":"email.send","queue":"default","priority":5,"max_losses":3}');
INSERT INTO schedules VALUES('nightly','0 3 * * *','Europe/Berlin','skip','one',86400000,0,NULL,NULL,1795312800000,1795263538162,6,NULL,NULL,0,1795263538145,1795263538145,'{"job":"command","args":["true"],"queue":"default","priority":5,"max_attempts":1,"max_losses":3,"options":{"path":"/usr/bin/true","cwd":"/srv/app"}}');
CREATE TABLE schedule_open (
  schedule TEXT NOT NULL REFERENCES schedules (name) ON DELETE CASCADE,
  task_id  INTEGER NOT NULL,
  PRIMARY KEY (schedule, task_id)
) STRICT, WITHOUT ROWID;
INSERT INTO schedule_open VALUES('full',29);
INSERT INTO schedule_open VALUES('nightly',6);
CREATE TABLE schedule_inputs (
  name TEXT PRIMARY KEY REFERENCES schedules (name) ON DELETE CASCADE,
  data BLOB NOT NULL CHECK (length(data) <= 16777216)
) STRICT;
INSERT INTO schedule_inputs VALUES('full',X'0001ff');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('workers',3);
CREATE INDEX limits_due ON limits (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tasks_pending ON tasks (queue, job, priority DESC) WHERE state = 'pending';
CREATE INDEX tasks_due ON tasks (run_at, queue, state) WHERE state = 'scheduled' OR state = 'retrying';
CREATE INDEX tasks_running ON tasks (worker) WHERE state = 'running';
CREATE INDEX tasks_expiry ON tasks (expires_at) WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL;
CREATE UNIQUE INDEX tasks_unique ON tasks (unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL;
CREATE INDEX tasks_finished ON tasks (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_failed ON tasks (finished_at) WHERE state = 'failed';
CREATE INDEX tasks_lost ON tasks (queue, job, priority DESC) WHERE losses >= 1 AND finished_at IS NULL;
CREATE UNIQUE INDEX tasks_tick ON tasks (schedule, tick) WHERE schedule IS NOT NULL;
CREATE UNIQUE INDEX tasks_lane ON tasks (lane) WHERE lane IS NOT NULL AND (state = 'pending' OR state = 'running' OR state = 'retrying');
CREATE INDEX tasks_blocked ON tasks (lane, waits, priority DESC, id, queue) WHERE waits IS NOT NULL;
CREATE TRIGGER tasks_deleted AFTER DELETE ON tasks WHEN OLD.id < 4503599627370496 AND OLD.id > (SELECT coalesce(max(id), 0) FROM tasks WHERE id < 4503599627370496)
BEGIN
  INSERT OR IGNORE INTO last_ids (id) VALUES (OLD.id);
  DELETE FROM last_ids WHERE id < OLD.id;
END;
CREATE TRIGGER tasks_id_kept BEFORE UPDATE OF id ON tasks WHEN NEW.id <> OLD.id
BEGIN
  SELECT RAISE(ABORT, 'id: it cannot be changed');
END;
CREATE TRIGGER tasks_reopened AFTER UPDATE OF run_at, losses, expires_at ON tasks
WHEN OLD.state = 'completed' AND NEW.state <> 'completed' AND OLD.worker IS NOT NULL AND OLD.started_at IS NOT NULL
BEGIN
  INSERT OR IGNORE INTO attempts (task_id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome)
  VALUES (OLD.id, OLD.generation_id - 1, OLD.attempt, 'completed', 1, OLD.worker, OLD.started_at, OLD.finished_at, OLD.outcome);
END;
CREATE INDEX dependencies_on ON dependencies (on_id, open, task_id, any_outcome);
CREATE INDEX dependencies_open ON dependencies (task_id) WHERE open = 1;
CREATE INDEX workers_live ON workers (beat_at) WHERE ended_at IS NULL;
CREATE INDEX schedules_next ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE TRIGGER schedules_keep BEFORE DELETE ON tasks WHEN OLD.schedule IS NOT NULL BEGIN
  UPDATE schedules SET kept_state = OLD.state, kept_duration = coalesce(json_extract(OLD.outcome, '$.duration'), OLD.finished_at - OLD.started_at)
  WHERE name = OLD.schedule AND last_task_id = OLD.id;
END;
CREATE VIEW tasks_view AS
SELECT t.id, t.job, t.args, t.label, t.queue, t.state, t.outcome ->> '$.reason' AS reason, t.priority, t.lane, t.unique_key,
  (SELECT json_group_array(on_id) FROM dependencies WHERE task_id = t.id AND open = 1 AND any_outcome = 0) AS after,
  (SELECT json_group_array(on_id) FROM dependencies WHERE task_id = t.id AND open = 1 AND any_outcome = 1) AS after_any,
  t.schedule, strftime('%Y-%m-%dT%H:%M:%fZ', t.run_at / 1000.0, 'unixepoch') AS run_at, strftime('%Y-%m-%dT%H:%M:%fZ', t.expires_at / 1000.0, 'unixepoch') AS expires_at,
  t.attempt, t.max_attempts, t.losses, t.max_losses,
  (t.options ->> '$.timeout') / 1000.0 AS timeout,
  (coalesce(t.options ->> '$.kill_after', 10000)) / 1000.0 AS kill_after,
  coalesce(t.options ->> '$.backoff', 'exponential') AS backoff,
  (coalesce(t.options ->> '$.backoff_delay', 10000)) / 1000.0 AS backoff_delay,
  (coalesce(t.options ->> '$.backoff_max', 3600000)) / 1000.0 AS backoff_max,
  t.options ->> '$.retry_on' AS retry_on,
  coalesce(t.options ->> '$.output_limit', 1048576) AS output_limit,
  t.options ->> '$.path' AS path,
  t.options ->> '$.cwd' AS cwd,
  t.options -> '$.env' AS env,
  t.options ->> '$.env_file' AS env_file,
  CASE WHEN t.parts & 1 THEN (SELECT length(data) FROM inputs WHERE task_id = t.id) ELSE 0 END AS input_bytes,
  t.generation_id, w.id AS worker_id, w.name AS worker, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(t.lease_expires_at, 0) / 1000.0, 'unixepoch') AS lease_expires_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', c.requested_at / 1000.0, 'unixepoch') AS cancel_requested_at, strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1000.0, 'unixepoch') AS created_at, t.created_by,
  strftime('%Y-%m-%dT%H:%M:%fZ', t.updated_at / 1000.0, 'unixepoch') AS updated_at, strftime('%Y-%m-%dT%H:%M:%fZ', t.started_at / 1000.0, 'unixepoch') AS started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', t.finished_at / 1000.0, 'unixepoch') AS finished_at,
  CASE WHEN t.state <> 'running' THEN coalesce(t.outcome ->> '$.duration', t.finished_at - t.started_at) / 1000.0 END AS duration, t.result,
  t.outcome ->> '$.error' AS error, t.outcome ->> '$.exit_code' AS exit_code, t.outcome ->> '$.signal' AS signal,
  coalesce(t.outcome ->> '$.output_bytes', 0) AS output_bytes, coalesce(t.outcome ->> '$.output_truncated', 0) AS output_truncated, p.report AS progress
FROM tasks AS t LEFT JOIN workers AS w ON w.number = t.worker
  LEFT JOIN cancel_requests AS c ON c.task_id = t.id AND c.generation_id >= t.generation_id - 2 AND (t.state = 'running' OR t.finished_at IS NOT NULL)
  LEFT JOIN progress_reports AS p ON p.task_id = t.id AND p.generation_id >= t.generation_id - 1;
CREATE VIEW attempts_view AS
SELECT a.task_id, a.generation_id, a.attempt, a.state, a.outcome ->> '$.reason' AS reason, a.counted, w.id AS worker_id, w.name AS worker,
  strftime('%Y-%m-%dT%H:%M:%fZ', a.started_at / 1000.0, 'unixepoch') AS started_at, strftime('%Y-%m-%dT%H:%M:%fZ', a.finished_at / 1000.0, 'unixepoch') AS finished_at,
  coalesce(a.outcome ->> '$.duration', a.finished_at - a.started_at) / 1000.0 AS duration, a.outcome ->> '$.exit_code' AS exit_code,
  a.outcome ->> '$.signal' AS signal, a.outcome ->> '$.error' AS error, coalesce(a.outcome ->> '$.output_bytes', 0) AS output_bytes,
  coalesce(a.outcome ->> '$.output_truncated', 0) AS output_truncated
FROM (SELECT task_id, generation_id, attempt, state, counted, worker, started_at, finished_at, outcome FROM attempts
  UNION ALL SELECT id, generation_id - 1, attempt, state, 1, worker, started_at, finished_at, outcome FROM tasks
  WHERE state = 'completed' AND worker IS NOT NULL AND started_at IS NOT NULL) AS a LEFT JOIN workers AS w ON w.number = a.worker;
CREATE VIEW schedules_view AS
SELECT s.name, s.cron, s.zone, s.overlap, s.catch_up, s.catch_up_window / 1000.0 AS catch_up_window, s.jitter / 1000.0 AS jitter,
  s.paused_at IS NOT NULL AS paused, strftime('%Y-%m-%dT%H:%M:%fZ', s.paused_at / 1000.0, 'unixepoch') AS paused_at, s.paused_by,
  strftime('%Y-%m-%dT%H:%M:%fZ', s.next_at / 1000.0, 'unixepoch') AS next_at, strftime('%Y-%m-%dT%H:%M:%fZ', s.last_at / 1000.0, 'unixepoch') AS last_at,
  s.last_task_id, coalesce(t.state, s.kept_state) AS last_state,
  CASE WHEN t.id IS NULL THEN s.kept_duration ELSE coalesce(t.outcome ->> '$.duration', t.finished_at - t.started_at) END / 1000.0 AS last_duration, s.skipped, s.task,
  strftime('%Y-%m-%dT%H:%M:%fZ', s.created_at / 1000.0, 'unixepoch') AS created_at, strftime('%Y-%m-%dT%H:%M:%fZ', s.updated_at / 1000.0, 'unixepoch') AS updated_at
FROM schedules AS s LEFT JOIN tasks AS t ON t.id = s.last_task_id;
CREATE VIEW enqueue AS
SELECT NULL AS job, NULL AS args, NULL AS label, NULL AS queue, NULL AS priority, NULL AS lane, NULL AS unique_key, NULL AS after, NULL AS after_any,
  NULL AS run_at, NULL AS expires_at, NULL AS max_attempts, NULL AS max_losses,
  NULL AS timeout, NULL AS kill_after, NULL AS backoff, NULL AS backoff_delay, NULL AS backoff_max, NULL AS retry_on, NULL AS output_limit, NULL AS cwd, NULL AS env, NULL AS env_file, NULL AS input,
  NULL AS created_by
WHERE FALSE;
CREATE TRIGGER enqueue_insert INSTEAD OF INSERT ON enqueue
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
  SELECT RAISE(ABORT, 'unique_key: at most 200 bytes of text without control characters')
    WHERE typeof(NEW.unique_key) <> 'text' AND NEW.unique_key IS NOT NULL OR length(CAST(NEW.unique_key AS BLOB)) > 200 OR instr(NEW.unique_key, char(0))
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
    WHEN NEW.timeout IS NOT NULL AND (typeof(NEW.timeout) <> 'integer' OR NEW.timeout NOT BETWEEN 1 AND 315360000000) THEN RAISE(ABORT, 'timeout: milliseconds, 1 to 315360000000')
    WHEN NEW.kill_after IS NOT NULL AND (typeof(NEW.kill_after) <> 'integer' OR NEW.kill_after NOT BETWEEN 0 AND 315360000000) THEN RAISE(ABORT, 'kill_after: milliseconds, 0 to 315360000000')
    WHEN NEW.backoff IS NOT NULL AND (NOT (NEW.backoff = 'fixed' OR NEW.backoff = 'linear' OR NEW.backoff = 'exponential')) THEN RAISE(ABORT, 'backoff: one of fixed, linear, exponential')
    WHEN NEW.backoff_delay IS NOT NULL AND (typeof(NEW.backoff_delay) <> 'integer' OR NEW.backoff_delay NOT BETWEEN 0 AND 315360000000) THEN RAISE(ABORT, 'backoff_delay: milliseconds, 0 to 315360000000')
    WHEN NEW.backoff_max IS NOT NULL AND (typeof(NEW.backoff_max) <> 'integer' OR NEW.backoff_max NOT BETWEEN 0 AND 315360000000) THEN RAISE(ABORT, 'backoff_max: milliseconds, 0 to 315360000000')
    WHEN NEW.retry_on IS NOT NULL AND (typeof(NEW.retry_on) <> 'text' OR NEW.retry_on = '' OR NEW.retry_on GLOB '*[^0-9,-]*' OR length(CAST(NEW.retry_on AS BLOB)) > 1000 OR instr(NEW.retry_on, char(0))) THEN RAISE(ABORT, 'retry_on: exit codes, as in 75,100-111')
    WHEN NEW.output_limit IS NOT NULL AND (typeof(NEW.output_limit) <> 'integer' OR NEW.output_limit NOT BETWEEN 0 AND 9007199254740992) THEN RAISE(ABORT, 'output_limit: bytes, 0 to 9007199254740992')
    WHEN NEW.cwd IS NOT NULL AND (typeof(NEW.cwd) <> 'text' OR length(CAST(NEW.cwd AS BLOB)) > 4096 OR instr(NEW.cwd, char(0))) THEN RAISE(ABORT, 'cwd: at most 4096 bytes of text without NUL')
    WHEN NEW.env IS NOT NULL AND (CASE WHEN typeof(NEW.env) <> 'text' OR NOT json_valid(NEW.env) OR length(CAST(NEW.env AS BLOB)) > 131072 THEN 1
      WHEN json_type(NEW.env) <> 'object' THEN 1
      ELSE EXISTS (SELECT 1 FROM json_each(NEW.env) WHERE type <> 'text' OR key = '' OR instr(key, '=') OR instr(key || value, char(0))) END) THEN RAISE(ABORT, 'env: a JSON object of texts, at most 131072 bytes')
    WHEN NEW.env_file IS NOT NULL AND (typeof(NEW.env_file) <> 'text' OR length(CAST(NEW.env_file AS BLOB)) > 4096 OR instr(NEW.env_file, char(0))) THEN RAISE(ABORT, 'env_file: at most 4096 bytes of text without NUL')
  END;
  SELECT RAISE(ABORT, 'input: text or BLOB, at most 16777216 bytes')
    WHERE typeof(NEW.input) = 'integer' OR typeof(NEW.input) = 'real' OR length(CAST(NEW.input AS BLOB)) > 16777216;
  SELECT RAISE(ABORT, 'after, after_any: a JSON array of ids of tasks that exist')
    WHERE EXISTS (SELECT 1 FROM (SELECT NEW.after AS list UNION ALL SELECT NEW.after_any) WHERE list IS NOT NULL AND CASE
      WHEN typeof(list) <> 'text' OR NOT json_valid(list) OR length(CAST(list AS BLOB)) > 1048576 THEN 1 WHEN json_type(list) <> 'array' THEN 1
      ELSE EXISTS (SELECT 1 FROM json_each(list) WHERE type <> 'integer' OR NOT EXISTS (SELECT 1 FROM tasks WHERE id = value)) END);
  INSERT INTO tasks (id, generation_id, state, queue, job, args, label, priority, run_at, expires_at, max_attempts, max_losses, unique_key, lane, parts,
    created_at, created_by, updated_at, options)
  SELECT (SELECT coalesce(max(id), 0) + 1 FROM (SELECT max(id) AS id FROM tasks WHERE id < 4503599627370496 UNION ALL SELECT max(id) FROM last_ids)),
    NOT ordered, CASE WHEN coalesce(NEW.run_at, now) <= now AND NEW.lane IS NULL AND NOT ordered THEN 'pending' ELSE 'scheduled' END,
    coalesce(NEW.queue, 'default'), coalesce(NEW.job, 'command'), NEW.args, NEW.label, coalesce(NEW.priority, 5), coalesce(NEW.run_at, now), NEW.expires_at,
    NEW.max_attempts, coalesce(NEW.max_losses, 3), NEW.unique_key, NEW.lane, nullif((coalesce(length(CAST(NEW.input AS BLOB)), 0) > 0) + 2 * ordered, 0),
    now, NEW.created_by, now, nullif(json_patch('{}', json_object('timeout', NEW.timeout, 'kill_after', NEW.kill_after, 'backoff', NEW.backoff, 'backoff_delay', NEW.backoff_delay, 'backoff_max', NEW.backoff_max, 'retry_on', NEW.retry_on, 'output_limit', NEW.output_limit, 'cwd', NEW.cwd, 'env', json(NEW.env), 'env_file', NEW.env_file)), '{}')
  FROM (SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now,
    coalesce(json_array_length(NEW.after), 0) + coalesce(json_array_length(NEW.after_any), 0) > 0 AS ordered)
  WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE unique_key = NEW.unique_key AND finished_at IS NULL);
  INSERT INTO inputs (task_id, data) SELECT last_insert_rowid(), CAST(NEW.input AS BLOB) WHERE changes() = 1 AND length(CAST(NEW.input AS BLOB)) > 0;
  INSERT OR IGNORE INTO dependencies (task_id, on_id, any_outcome, open)
    SELECT id, value, any_outcome, 1
    FROM (SELECT id FROM tasks WHERE id < 4503599627370496 AND generation_id = 0 AND parts >= 2 ORDER BY id DESC LIMIT 1) CROSS JOIN
      (SELECT value, 0 AS any_outcome FROM json_each(coalesce(NEW.after, '[]')) UNION ALL SELECT value, 1 FROM json_each(coalesce(NEW.after_any, '[]')))
    WHERE NOT EXISTS (SELECT 1 FROM dependencies WHERE task_id = id);
END;
COMMIT;
