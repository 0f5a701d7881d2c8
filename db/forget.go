package db

// ofTasks is a condition for the rows of the tasks whose ids are in the JSON array [1]. A transaction that deletes many tasks deletes all
// their rows of a table in one statement: on a server each statement is a round trip, and other writers wait for the transaction.
const ofTasks = ` WHERE task_id IN (SELECT CAST(value AS bigint) FROM {json_each})`

// These statements delete the rows of deleted tasks in all other tables, in the transaction that deletes the tasks.
var (
	forgetAttempts   = command(`DELETE FROM {attempts}` + ofTasks)
	forgetOutputs    = command(`DELETE FROM {output}` + ofTasks)
	forgetInputs     = command(`DELETE FROM {inputs}` + ofTasks)
	forgetRequests   = command(`DELETE FROM {cancel_requests}` + ofTasks)
	forgetProgress   = command(`DELETE FROM {progress_reports}` + ofTasks)
	forgetWaiting    = command(`DELETE FROM {dependencies}` + ofTasks)
	forgetSteps      = command(`DELETE FROM {steps}` + ofTasks)
	forgetChanges    = command(`DELETE FROM {task_changes}` + ofTasks)
	forgetTaskPauses = command(`DELETE FROM {task_pauses}` + ofTasks)
)

// forget deletes the rows of deleted tasks in other tables.
func (t *tx) forget(ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	list := jsonText(ids)
	for _, of := range []*statement{forgetAttempts, forgetOutputs, forgetInputs, forgetRequests, forgetProgress, forgetWaiting, forgetSteps,
		forgetChanges, forgetTaskPauses} {
		if err := t.run(of, list); err != nil {
			return err
		}
	}
	return nil
}
