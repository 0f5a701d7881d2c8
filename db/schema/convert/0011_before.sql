-- This file begins the conversion of schema 11. It drops or renames the views, triggers, indexes and tables that differ in the next schema.
-- The tables inputs, output, steps, counters, totals and limits have the same form in both schemas and stay unchanged.

DROP VIEW {attempts};
DROP VIEW {schedules};
DROP TRIGGER {tasks_id};
DROP TRIGGER {tasks_id_kept};
DROP TRIGGER {tasks_plain};
DROP TRIGGER {tasks_plain_checked};
DROP TRIGGER {tasks_reopened};
DROP TRIGGER {schedules_keep};
DROP INDEX {tasks_pending};
DROP INDEX {tasks_due};
DROP INDEX {tasks_running};
DROP INDEX {tasks_expiry};
DROP INDEX {tasks_unique};
DROP INDEX {tasks_finished};
DROP INDEX {tasks_failed};
DROP INDEX {tasks_lost};
DROP INDEX {tasks_tick};
DROP INDEX {tasks_lane};
DROP INDEX {tasks_blocked};
DROP INDEX {dependencies_on};
DROP INDEX {dependencies_open};
DROP INDEX {schedules_next};
DROP INDEX {workers_live};
ALTER TABLE {tasks} RENAME TO {old_tasks};
ALTER TABLE {attempt_rows} RENAME TO {old_attempts};
ALTER TABLE {dependencies} RENAME TO {old_dependencies};
ALTER TABLE {pauses} RENAME TO {old_pauses};
ALTER TABLE {workers} RENAME TO {old_workers};
ALTER TABLE {counter_hours} RENAME TO {old_counter_hours};
ALTER TABLE {schedule_rows} RENAME TO {old_schedules};
ALTER TABLE {schedule_open} RENAME TO {old_schedule_open};
ALTER TABLE {schedule_inputs} RENAME TO {old_schedule_inputs};
