package db

// ofTasks selects the rows of the tasks whose ids are in the JSON array [1].
// One statement for each table, since on a server each is a round trip and
// other writers wait.
const ofTasks = ` WHERE task_id IN (SELECT CAST(value AS bigint) FROM {json_each})`

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
