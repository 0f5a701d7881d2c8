-- Schema 2: what recovery on the same host needs.

-- Tasks that have lost a worker, which are few: those that may have killed it are claimed apart from the others, in the same order.
CREATE INDEX tasks_lost ON tasks (queue, job, priority DESC) WHERE losses >= 1 AND finished_at IS NULL;

-- Whose processes another worker can look at and kill: those of the same user, seen from the same pid namespace.
ALTER TABLE workers ADD COLUMN uid INTEGER NOT NULL DEFAULT -1;           -- -1: not known
ALTER TABLE workers ADD COLUMN pid_namespace TEXT NOT NULL DEFAULT '';    -- as the kernel names it; empty: not known
