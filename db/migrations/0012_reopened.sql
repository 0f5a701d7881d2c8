-- A trigger on the state of tasks made every finish a statement that prepares to be undone: a tenth of the life of a task. Who sets a completed
-- task back writes the record of its attempt now.
DROP TRIGGER tasks_reopened;
