package db

import (
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/internal/statementtest"
	"example.com/runner/jobs"
)

const (
	byID      = "tasks USING INTEGER PRIMARY KEY (rowid=?)"
	byRange   = "tasks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
	byOutput  = "output USING INDEX sqlite_autoindex_output_1 (task_id=? AND generation_id=?"
	byAttempt = "attempts USING PRIMARY KEY (task_id=?"
	byPause   = "pauses USING PRIMARY KEY (queue=?)"
	byKey     = "held USING PRIMARY KEY (unique_key=?)"
	byHolder  = "holder USING INTEGER PRIMARY KEY (rowid=?)"
)

// byNeed is how a statement finds the unfinished dependents of a task.
var byNeed = []string{"COVERING INDEX dependencies_on (on_id=?)", "dependent USING INTEGER PRIMARY KEY (rowid=?)"}

// listed allows a plan to scan the JSON array of ids that the statement gets as
// a parameter.
var listed = []string{"SCAN json_each"}

// plans holds the expected query plans of the statements of this package, by
// the names of the statements.
var plans = statementtest.Plans{
	"insertTask":       {Text: insertTask},
	"insertOne":        {Text: insertOne},
	"insertPlain":      {Text: insertPlain.Of(1)},
	"insertPlain 2":    {Text: insertPlain.Of(2), Allow: []string{"SCAN 2-ROW VALUES CLAUSE"}},
	"insertPlain 4":    {Text: insertPlain.Of(4), Allow: []string{"SCAN 4-ROW VALUES CLAUSE"}},
	"insertPlain 8":    {Text: insertPlain.Of(8), Allow: []string{"SCAN 8-ROW VALUES CLAUSE"}},
	"insertPlain 16":   {Text: insertPlain.Of(16), Allow: []string{"SCAN 16-ROW VALUES CLAUSE"}},
	"startBatch":       {Text: startBatch, By: []string{byID}},
	"insertInput":      {Text: insertInput},
	"insertAttempt":    {Text: insertAttempt},
	"insertWorker":     {Text: insertWorker},
	"insertLastOutput": {Text: insertLastOutput},
	"insertOutput":     {Text: insertOutput, By: []string{"USING INTEGER PRIMARY KEY (rowid=?)"}, Allow: []string{"SCAN CONSTANT ROW"}},
	"addCount":         {Text: addCount},
	"addTotal":         {Text: addTotal},
	"selectTotals":     {Text: selectTotals, Allow: []string{"SCAN totals"}}, // the table has few rows: one for each queue, job and result

	"claimSelect":    {Text: claimSelect, By: []string{"INDEX tasks_pending (queue=? AND job=?)"}},
	"claimTasks":     {Text: claimTasks.Of(1), By: []string{"INDEX tasks_pending (queue=? AND job=?)", byID}, Allow: []string{"SCAN next"}},
	"noteBoot":       {Text: noteBoot, Allow: []string{"SCAN schedules", "SCAN workers"}},
	"selectSuspects": {Text: selectSuspects, Allow: []string{"SCAN tasks USING INDEX tasks_lost", "USE TEMP B-TREE FOR ORDER BY"}},
	"selectQueues": {Text: selectQueues, By: []string{"COVERING INDEX tasks_pending (queue>?)"},
		Allow: []string{"SCAN names", "SCAN CONSTANT ROW", "SCAN tasks USING COVERING INDEX tasks_pending"}}, // the last scan reads 1 row
	"selectDue": {Text: selectDue, By: []string{"COVERING INDEX tasks_due", "INDEX tasks_expiry", "COVERING INDEX limits_due"},
		Allow: []string{"SCAN CONSTANT ROW", "SCAN pauses"}},
	"selectLook": {Text: selectLook, By: []string{"COVERING INDEX tasks_due", "INDEX tasks_expiry", "COVERING INDEX limits_due",
		"COVERING INDEX tasks_pending (queue>?)"},
		Allow: []string{"SCAN CONSTANT ROW", "SCAN pauses", "SCAN tasks USING INDEX tasks_lost", "SCAN names", "SCAN pending",
			"SCAN tasks USING COVERING INDEX tasks_pending"}},
	"firstDue":         {Text: firstDue, By: []string{"COVERING INDEX tasks_due (run_at<?)"}},
	"selectOrdered":    {Text: selectOrdered, By: []string{"COVERING INDEX tasks_due (run_at<?)", byID}},
	"setBackTasks":     {Text: setBackTasks, By: []string{"INDEX tasks_due (run_at>?)"}},
	"setBackNew":       {Text: setBackNew, By: []string{"INDEX tasks_due (run_at>? AND run_at<?)"}},
	"setBackEnds":      {Text: setBackEnds, By: []string{"INDEX tasks_finished (finished_at>?)"}},
	"setBackWorkers":   {Text: setBackWorkers, Allow: []string{"SCAN workers"}},
	"setBackKeys":      {Text: setBackKeys, By: []string{byID}, Allow: []string{"SCAN unique_keys"}},
	"setBackSchedules": {Text: setBackSchedules, Allow: []string{"SCAN schedules"}},
	"setBackLimits":    {Text: setBackLimits, Allow: []string{"SCAN limits"}},
	"setBackPauses":    {Text: setBackPauses, Allow: []string{"SCAN pauses"}},
	"promoteTasks":     {Text: promoteTasks, By: []string{"COVERING INDEX tasks_due (run_at<?)", byID}},
	"expireTasks":      {Text: expireTasks, By: []string{"INDEX tasks_expiry (expires_at>? AND expires_at<?)", byID}},
	"releaseKey":       {Text: releaseKey, By: []string{byID, "unique_keys USING PRIMARY KEY (unique_key=?)"}},
	"selectHolder":     {Text: selectHolder, By: []string{"INDEX tasks_unique (unique_key=?)", byKey, byHolder}},
	"selectOnly":       {Text: selectOnly, By: []string{byID}},
	"reserveTask":      {Text: reserveTask, By: []string{byID}},
	"selectReserver":   {Text: selectReserver, By: []string{byID, "workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"markInput":        {Text: markInput, By: []string{byID}},
	"reserveAgain":     {Text: reserveAgain, By: []string{byID}},
	"selectInput":      {Text: selectInput, By: []string{"inputs USING INTEGER PRIMARY KEY (rowid=?)"}},
	"finishTask":       {Text: finishTask, By: []string{byID}},
	"completeTask":     {Text: completeTask, By: []string{byID}},
	"completeSome":     {Text: completeSome.Of(16), By: []string{byID}, Allow: []string{"SCAN d", "SCAN 16 CONSTANT ROWS"}},
	"releaseTask":      {Text: releaseTask, By: []string{byID, byAttempt}},
	"selectRefused":    {Text: selectRefused, By: []string{byID, byAttempt}},

	"selectCompleted": {Text: selectCompleted, By: []string{byAttempt, byID}, Allow: []string{"SCAN CONSTANT ROW", "SCAN attempts"}},
	"selectTask":      {Text: selectTask, By: []string{byID}},
	"insertStep":      {Text: insertStep, By: []string{"USING INTEGER PRIMARY KEY (rowid=?)"}, Allow: []string{"SCAN CONSTANT ROW"}},
	"selectSteps":     {Text: selectSteps, By: []string{"steps USING INDEX sqlite_autoindex_steps_1 (task_id=?)"}},
	"deleteSteps":     {Text: deleteSteps, By: []string{"steps USING INDEX sqlite_autoindex_steps_1 (task_id=?)"}},
	"setProgress":     {Text: setProgress, By: []string{"USING INTEGER PRIMARY KEY (rowid=?)"}, Allow: []string{"SCAN CONSTANT ROW"}},
	"setLastProgress": {Text: setLastProgress},

	"renewLeases": {Text: renewLeases, By: []string{"tasks_running (worker=? AND rowid=?)"}, Allow: []string{"SCAN json_each"}},
	"selectOwned": {Text: selectOwned, By: []string{"INDEX tasks_running (worker=?)"}},
	"selectCancelRequests": {Text: selectCancelRequests, By: []string{"INDEX tasks_running (worker=?)"},
		Allow: []string{"SCAN cancel_requests EXISTS"}}, // the scan reads one row
	"selectLeases": {Text: selectLeases, By: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"},
		Allow: []string{"SCAN tasks USING INDEX tasks_running"}},
	"revokeClaim":     {Text: revokeClaim, By: []string{byID}},
	"selectRevoked":   {Text: selectRevoked, By: []string{byID}},
	"selectClaim":     {Text: selectClaim, By: []string{byID}},
	"setWorkerQueues": {Text: setWorkerQueues, By: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"touchWorker":     {Text: touchWorker, By: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"loseWorker":      {Text: loseWorker, By: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"selectClaims":    {Text: selectClaims, By: []string{"INDEX tasks_running (worker=?)"}},
	"selectOwners": {Text: selectOwners,
		By: []string{"COVERING INDEX tasks_running (worker=?)", "workers USING INTEGER PRIMARY KEY (rowid=?)"},
		// The two scanned indexes have few entries: the workers that have not
		// ended, and the running tasks.
		Allow: []string{"SCAN workers USING INDEX workers_live", "SCAN tasks USING COVERING INDEX tasks_running"}},
	"drainWorker": {Text: drainWorker, By: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"endWorker":   {Text: endWorker, By: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"selectWorkers": {Text: selectWorkers,
		By:    []string{"workers USING INDEX workers_live (beat_at>?)", "COVERING INDEX tasks_running (worker=?)"},
		Allow: []string{"SCAN claims", "USE TEMP B-TREE FOR ORDER BY"}}, // the table has few rows, because there are few workers

	"peekTasks":  {Text: peekTasks.Of(5), By: []string{"INDEX tasks_pending (queue=? AND job=?)", byID}, Allow: []string{"SCAN first"}},
	"claimThese": {Text: claimThese, By: []string{byID}, Allow: []string{"SCAN next", "SCAN json_each"}},

	"selectFeatures": {Text: selectFeatures, By: []string{},
		Allow: []string{"SCAN CONSTANT ROW", "SCAN dependencies USING COVERING INDEX dependencies_open", "SCAN limits", "SCAN pauses",
			"SCAN cursors"}},
	"insertDependency": {Text: insertDependency},
	"selectFollowers": {Text: selectFollowers, By: []string{"COVERING INDEX dependencies_on (on_id=? AND open=?)", byID,
		"other USING COVERING INDEX dependencies_open (task_id=?"}},
	"closeOn":    {Text: closeOn, By: []string{"INDEX dependencies_on (on_id=? AND open=?)"}},
	"closeAll":   {Text: closeAll, By: []string{"dependencies USING PRIMARY KEY (task_id=?)"}},
	"selectGone": {Text: selectGone, By: []string{"dependencies USING PRIMARY KEY (task_id=?)", byID}},
	"reopen":     {Text: reopen, By: []string{"dependencies USING PRIMARY KEY (task_id=?)", byID}},
	"selectRevivable": {Text: selectRevivable, By: []string{"COVERING INDEX dependencies_on (on_id=?)", byID,
		"other USING PRIMARY KEY (task_id=?)"}, Allow: []string{"USE TEMP B-TREE FOR ORDER BY"}},
	"selectDependencies": {Text: selectDependencies, By: []string{"dependencies USING PRIMARY KEY (task_id=?)", byID}},
	"selectDependents": {Text: selectDependents, By: []string{"COVERING INDEX dependencies_on (on_id=?)", byID},
		Allow: []string{"USE TEMP B-TREE FOR ORDER BY"}},
	"selectUpstream": {Text: selectUpstream, By: []string{"dependencies USING PRIMARY KEY (task_id=?)", byID}},

	"selectBefore": {Text: selectBefore, By: []string{"dependencies USING PRIMARY KEY (task_id=?)"}, Allow: []string{"SCAN json_each"}},
	"selectBehind": {Text: selectBehind, By: []string{"COVERING INDEX dependencies_on (on_id=?)"}, Allow: []string{"SCAN json_each"}},
	"selectNames":  {Text: selectNames, By: []string{byID}, Allow: []string{"SCAN json_each"}},
	"selectAmong": {Text: selectAmong, By: []string{"dependencies USING PRIMARY KEY (task_id=? AND on_id=?)"},
		Allow: []string{"SCAN json_each"}},
	"selectEnded": {Text: selectEnded, By: []string{"attempts USING INDEX attempts_finished (finished_at>?)",
		"tasks USING INDEX tasks_finished (finished_at>?)"}},
	"selectAtWorkers": {Text: selectAtWorkers, Allow: []string{"SCAN tasks USING INDEX tasks_running"}},
	"selectWorkerNames": {Text: selectWorkerNames, By: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"},
		Allow: []string{"SCAN json_each"}},

	"laneHeld":    {Text: laneHeld, By: []string{"INDEX tasks_lane (lane=?)"}, Allow: []string{"SCAN CONSTANT ROW"}},
	"laneHolders": {Text: laneHolders, By: []string{"INDEX tasks_lane (lane=?)"}},
	"laneRunning": {Text: laneRunning, By: []string{"INDEX tasks_lane (lane=?)"}},
	"laneNext":    {Text: laneNext, By: []string{"INDEX tasks_blocked (lane=? AND waits=?)"}},

	"selectAdmission": {Text: selectAdmission, By: []string{"limits USING PRIMARY KEY (kind=?)"}},
	"selectPaused":    {Text: selectPaused, Allow: []string{"SCAN pauses"}},
	"selectLimit":     {Text: selectLimit, By: []string{"limits USING PRIMARY KEY (kind=? AND name=?)"}},
	"selectLimits":    {Text: selectLimits, Allow: []string{"SCAN limits"}},
	"countStarted":    {Text: countStarted, Allow: []string{"SCAN tasks USING INDEX tasks_running", "USE TEMP B-TREE FOR GROUP BY"}},
	"saveBucket":      {Text: saveBucket, By: []string{"limits USING PRIMARY KEY (kind=? AND name=?)"}},
	"setLimit":        {Text: setLimit},
	"removeLimit":     {Text: removeLimit, By: []string{"limits USING PRIMARY KEY (kind=? AND name=?)"}},
	"setLaneDue":      {Text: setLaneDue, By: []string{"limits USING PRIMARY KEY (kind=? AND name=?)"}},
	"selectFreeLanes": {Text: selectFreeLanes, By: []string{"COVERING INDEX limits_due (due_at<?)"}},
	"clearLaneDue":    {Text: clearLaneDue, By: []string{"limits_due (due_at<?)"}},

	"somePending": {Text: somePending, By: []string{"COVERING INDEX tasks_pending (queue=?)"}, Allow: []string{"SCAN CONSTANT ROW"}},
	"somePendingJob": {Text: somePendingJob, By: []string{"COVERING INDEX tasks_pending (queue=? AND job=?)"},
		Allow: []string{"SCAN CONSTANT ROW"}},

	"cancelWaiting": {Text: cancelWaiting, By: []string{byID}},
	"moveWaiting":   {Text: moveWaiting, By: []string{byID}},
	"setDue":        {Text: setDue, By: []string{byID}},
	"requestCancel": {Text: requestCancel, By: []string{byID}},
	"retryFinished": {Text: retryFinished, By: []string{byID, "other USING INDEX tasks_unique (unique_key=?)", byKey, byHolder}},
	"selectState":   {Text: selectState, By: []string{byID}},
	"deleteTask":    {Text: deleteTask, By: []string{byID}},
	"deleteWaiting": {Text: deleteWaiting, By: []string{"dependencies USING PRIMARY KEY (task_id=?)"}},
	"selectStatus":  {Text: selectStatus, By: []string{byID}},
	"rewriteTask":   {Text: rewriteTask, By: []string{byID}},
	"raiseTask":     {Text: raiseTask, By: []string{byID}},
	"setOptions":    {Text: setOptions, By: []string{byID}},
	"selectRivals": {Text: selectRivals, By: []string{"tasks_pending (queue=? AND job=?)", "tasks_blocked (lane=? AND waits=?)"},
		Allow: []string{"SCAN jobs", "SCAN CONSTANT ROW"}}, // reads one row for each job of the queue
	"holdKey":   {Text: holdKey},
	"freeKey":   {Text: freeKey, By: []string{"unique_keys USING PRIMARY KEY (unique_key=?)"}},
	"keepUntil": {Text: keepUntil, By: []string{"unique_keys USING PRIMARY KEY (unique_key=?)"}},
	"pruneKeys": {Text: pruneKeys, By: []string{"COVERING INDEX unique_keys_free (free_at<?)",
		"unique_keys USING PRIMARY KEY (unique_key=?)"}},
	"insertTaskPause": {Text: insertTaskPause},
	"deleteTaskPause": {Text: deleteTaskPause, By: []string{"task_pauses USING INTEGER PRIMARY KEY (rowid=?)"}},
	"waitsForTasks": {Text: waitsForTasks, By: []string{"COVERING INDEX dependencies_open (task_id=?)"},
		Allow: []string{"SCAN CONSTANT ROW"}},
	"insertChange":  {Text: insertChange},
	"trimChanges":   {Text: trimChanges, By: []string{"task_changes USING PRIMARY KEY (task_id=? AND seq<?)"}},
	"selectChanges": {Text: selectChanges, By: []string{"task_changes USING PRIMARY KEY (task_id=?)"}},
	"deleteInput":   {Text: deleteInput, By: []string{"inputs USING INTEGER PRIMARY KEY (rowid=?)"}},

	// These scans read one row from the beginning or the end of an index or
	// table.
	"selectMaxTimestamp": {Text: selectMaxTimestamp, By: []string{"COVERING INDEX tasks_finished"},
		Allow: []string{"SCAN workers", "SCAN tasks", "SCAN CONSTANT ROW"}},
	"selectLastHeartbeat": {Text: selectLastHeartbeat, Allow: []string{"SCAN workers"}},

	"selectKept":    {Text: selectKept, By: append([]string{byID}, byNeed...)},
	"selectOld":     {Text: selectOld, By: append([]string{"INDEX tasks_finished (finished_at>? AND finished_at<?)"}, byNeed...)},
	"selectOldKept": {Text: selectOldKept, By: append([]string{"INDEX tasks_kept (<expr>>? AND <expr><?)"}, byNeed...)},
	"selectOldest": {Text: selectOldest, By: append([]string{"INDEX tasks_finished (finished_at>? AND finished_at<?)"}, byNeed...),
		Allow: listed},
	"selectOldestWaiting": {Text: selectOldestWaiting, By: []string{"tasks USING INTEGER PRIMARY KEY (rowid>?)"}, Allow: listed},
	"selectOldFailed":     {Text: selectOldFailed, By: append([]string{"INDEX tasks_failed (finished_at>? AND finished_at<?)"}, byNeed...)},
	"forgetAttempts":      {Text: forgetAttempts, By: []string{byAttempt}, Allow: listed},
	"forgetOutputs": {Text: forgetOutputs,
		By: []string{"output USING COVERING INDEX sqlite_autoindex_output_1 (task_id=?)"}, Allow: listed},
	"forgetInputs":   {Text: forgetInputs, By: []string{"inputs USING INTEGER PRIMARY KEY (rowid=?)"}, Allow: listed},
	"forgetRequests": {Text: forgetRequests, By: []string{"cancel_requests USING INTEGER PRIMARY KEY (rowid=?)"}, Allow: listed},
	"forgetProgress": {Text: forgetProgress, By: []string{"progress_reports USING INTEGER PRIMARY KEY (rowid=?)"}, Allow: listed},
	"forgetWaiting":  {Text: forgetWaiting, By: []string{"dependencies USING PRIMARY KEY (task_id=?)"}, Allow: listed},
	"forgetSteps": {Text: forgetSteps,
		By: []string{"steps USING COVERING INDEX sqlite_autoindex_steps_1 (task_id=?)"}, Allow: listed},
	"forgetChanges":    {Text: forgetChanges, By: []string{"task_changes USING PRIMARY KEY (task_id=?)"}, Allow: listed},
	"forgetTaskPauses": {Text: forgetTaskPauses, By: []string{"task_pauses USING INTEGER PRIMARY KEY (rowid=?)"}, Allow: listed},
	"pruneTasks":       {Text: pruneTasks, By: append([]string{byID}, byNeed...), Allow: listed},
	"pruneWorkers": {Text: pruneWorkers, By: []string{"COVERING INDEX tasks_running (worker=?)"},
		Allow: []string{"SCAN workers"}}, // the statement runs once an hour
	// These statements run once an hour and read the counters of two days.
	"sumUpHours":    {Text: sumUpHours, Allow: []string{"SCAN counters", "USE TEMP B-TREE FOR GROUP BY"}},
	"deleteMinutes": {Text: deleteMinutes, Allow: []string{"SCAN counters"}},
	"deleteHours":   {Text: deleteHours, Allow: []string{"SCAN counter_hours"}},
	// This statement reads the minutes of two days and the hours of a year.
	"selectThroughput": {Text: selectThroughput.With(sqltext.Parts{"key": "state"}),
		Allow: []string{"SCAN counters", "SCAN counter_hours", "USE TEMP B-TREE FOR GROUP BY"}},
	"selectTimes": {Text: selectTimes, By: []string{"INDEX tasks_finished (finished_at>?)"}, Allow: []string{"SCAN latest"}},

	// This statement reads one row from the end of each table.
	"selectHighestID": {Text: selectHighestID, Allow: []string{"SEARCH tasks", "SEARCH last_ids", "SCAN ids"}},
	"selectBroken":    {Text: selectBroken, By: []string{"dependencies USING PRIMARY KEY (task_id=?)", byID}},
	"closeEnded":      {Text: closeEnded, By: []string{"dependencies USING PRIMARY KEY (task_id=?)", byID}},

	"insertPause":  {Text: insertPause},
	"deletePause":  {Text: deletePause, By: []string{byPause}},
	"deletePauses": {Text: deletePauses, Allow: []string{"SCAN pauses"}}, // the table has at most one row for each queue
	"endPauses":    {Text: endPauses, Allow: []string{"SCAN pauses"}},
	"selectPauses": {Text: selectPauses, Allow: []string{"SCAN pauses"}},

	"deleteOutput":     {Text: deleteOutput, By: []string{byOutput}},
	"cutOutput":        {Text: cutOutput, By: []string{byOutput}},
	"selectOutput":     {Text: selectOutput, By: []string{byOutput}},
	"selectLastOutput": {Text: selectLastOutput, By: []string{byOutput}},
	"selectRunning":    {Text: selectRunning, By: []string{byID}, Allow: []string{"SCAN CONSTANT ROW"}},

	// See TestListsReadEndOfTableOrIndex for the plans with filters, and
	// TestCountsUpToLimitReadIndex for the plans of counts with states.
	"selectTasks": {Text: selectTasks, Allow: []string{"SCAN tasks"}},
	"listTasks":   {Text: listOf(Part{}, listTasks, jobs.Filter{}), Allow: []string{"SCAN tasks"}},
	"listTasks by end": {Text: listOf(Part{Sort: ByEnd, Limit: 5}, listTasks, jobs.Filter{}),
		Allow: []string{"SCAN tasks USING INDEX tasks_finished"}},
	"partEnd": {Text: listOf(Part{Limit: 1}, partEnd, jobs.Filter{Before: 9}), By: []string{"tasks USING INTEGER PRIMARY KEY (rowid<?)"}},
	"partEnd by end": {Text: listOf(Part{Sort: ByEnd, Limit: 1}, partEnd, jobs.Filter{States: []jobs.State{jobs.Failed}}),
		Allow: []string{"SCAN tasks USING COVERING INDEX tasks_failed"}},
	"listSorted":   {Text: listOf(Part{}, listSorted, jobs.Filter{}), By: []string{byID}, Allow: []string{"SCAN tasks"}},
	"listVersions": {Text: listOf(Part{}, listVersions, jobs.Filter{}), Allow: []string{"SCAN tasks"}},
	"listIDs":      {Text: listOf(Part{}, listIDs, jobs.Filter{}), Allow: []string{"SCAN tasks"}},
	"countState":   {Text: countState.With(sqltext.Parts{"where": ""}), Allow: []string{"SCAN tasks", "USE TEMP B-TREE FOR GROUP BY"}},
	"countSome":    {Text: countSome.With(sqltext.Parts{"where": ""}), Allow: []string{"SCAN tasks", "SCAN part"}},
	"selectAttempts": {Text: selectAttempts, By: []string{byAttempt, byID},
		Allow: []string{"SCAN ended", "USE TEMP B-TREE FOR ORDER BY"}},
	"selectFailedBefore": {Text: selectFailedBefore, By: []string{byID, "ended USING PRIMARY KEY (task_id=?)",
		"later USING PRIMARY KEY (task_id=? AND generation_id>?)"}, Allow: append([]string{"USE TEMP B-TREE FOR DISTINCT"}, listed...)},
	"countAhead": {Text: countAhead, By: []string{"COVERING INDEX tasks_pending (queue=? AND job=? AND priority>?)",
		"COVERING INDEX tasks_pending (queue=? AND job=? AND priority=? AND rowid<?)"},
		Allow: []string{"SCAN part", "COMPOUND QUERY", "UNION ALL"}},
	"countPending": {Text: countPending, Allow: []string{"SCAN tasks USING COVERING INDEX tasks_pending"}},
	"countDue":     {Text: countDue, Allow: []string{"SCAN tasks USING COVERING INDEX tasks_due", "USE TEMP B-TREE FOR GROUP BY"}},
	"countRunning": {Text: countRunning, Allow: []string{"SCAN tasks USING INDEX tasks_running", "USE TEMP B-TREE FOR GROUP BY"}},
	"countBlocked": {Text: countBlocked,
		Allow: []string{"SCAN tasks USING COVERING INDEX tasks_blocked", "USE TEMP B-TREE FOR GROUP BY"}},
	"countEnded": {Text: countEnded, Allow: []string{"SCAN counters"}},
	"countQueues": {Text: countQueues, Allow: []string{"SCAN tasks USING COVERING INDEX tasks_pending",
		"SCAN tasks USING COVERING INDEX tasks_due", "SCAN tasks USING INDEX tasks_running",
		"SCAN tasks USING COVERING INDEX tasks_blocked", "SCAN counters", "USE TEMP B-TREE FOR GROUP BY"}},
	"countFailed": {Text: countFailed, By: []string{"INDEX tasks_failed (finished_at>?)"},
		Allow: []string{"CO-ROUTINE newest", "SCAN newest",
			"USE TEMP B-TREE FOR GROUP BY"}},
	"nextJob": {Text: nextJob, By: []string{"COVERING INDEX tasks_pending (queue=? AND job>?)"}},
	"selectHeads": {Text: selectHeads, By: []string{"COVERING INDEX tasks_pending (queue=? AND job=?)",
		"COVERING INDEX tasks_pending (queue=? AND job=? AND priority<?)",
		"INDEX tasks_pending (queue=? AND job=? AND priority>? AND priority<?)"}, Allow: []string{"SCAN json_each", "SCAN levels"}},
	"selectSchedules": {Text: selectSchedules, By: []string{byID}, Allow: []string{"SCAN schedules"}},
	"selectByName": {Text: selectByName, By: []string{"SCAN schedules USING INDEX sqlite_autoindex_schedules_1"},
		Allow: []string{"SCAN schedules USING INDEX"}},
	"selectNamed":   {Text: selectNamed, By: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"selectTicking": {Text: selectTicking, By: []string{"s USING INDEX schedules_next (next_at<?)"}},
	"selectNextTick": {Text: selectNextTick, By: []string{"INDEX schedules_next"},
		Allow: []string{"SCAN CONSTANT ROW", "SCAN json_each", "SCAN schedules USING INDEX schedules_next"}},
	"insertSchedule": {Text: insertSchedule},
	"takeSeqs":       {Text: takeSeqs, Allow: []string{"SCAN finished_seq"}},
	"insertFinished": {Text: insertFinished, By: []string{byID}},
	"makeCursor":     {Text: makeCursor, Allow: []string{"SCAN finished_seq"}},
	"removeCursor":   {Text: removeCursor, By: []string{"cursors USING PRIMARY KEY (name=?)"}},
	"selectCursor": {Text: selectCursor, By: []string{"cursors USING PRIMARY KEY (name=?)",
		"finished USING INTEGER PRIMARY KEY (rowid>?)"}},
	"takeCursor":     {Text: takeCursor, By: []string{"cursors USING PRIMARY KEY (name=?)"}},
	"moveCursor":     {Text: moveCursor, By: []string{"cursors USING PRIMARY KEY (name=?)"}},
	"freeCursor":     {Text: freeCursor, By: []string{"cursors USING PRIMARY KEY (name=?)"}},
	"trimFinished":   {Text: trimFinished, By: []string{"finished USING INTEGER PRIMARY KEY (rowid<?)"}, Allow: []string{"SCAN cursors"}},
	"selectFinished": {Text: selectFinished, By: []string{"finished USING INTEGER PRIMARY KEY (rowid>?)"}},
	"selectCursors": {Text: selectCursors, By: []string{"finished USING INTEGER PRIMARY KEY (rowid>?)"},
		Allow: []string{"SCAN cursors", "SCAN finished_seq"}},
	"openFailure":   {Text: openFailure},
	"closeFailure":  {Text: closeFailure, By: []string{"open_failures USING PRIMARY KEY (subject=?)"}},
	"pruneFailures": {Text: pruneFailures, By: []string{"SCAN open_failures"}, Allow: []string{"SCAN open_failures"}},
	"selectAlerting": {Text: selectAlerting, By: []string{"SCAN schedules USING INDEX schedules_alert"},
		Allow: []string{"SCAN schedules USING INDEX schedules_alert"}},
	"setLate":             {Text: setLate, By: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"insertScheduleInput": {Text: insertScheduleInput, By: []string{}},
	"deleteScheduleInput": {Text: deleteScheduleInput,
		By: []string{"schedule_inputs USING INDEX sqlite_autoindex_schedule_inputs_1 (name=?)"}},
	"deleteSchedule": {Text: deleteSchedule, By: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"pauseSchedule":  {Text: pauseSchedule, By: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"resumeSchedule": {Text: resumeSchedule, By: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"moveTick":       {Text: moveTick, By: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"noteTask":       {Text: noteTask, By: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"selectOpen":     {Text: selectOpen, By: []string{"schedule_open USING PRIMARY KEY (schedule=?)", byID}},
	"dropClosed": {Text: dropClosed, By: []string{"schedule_open USING PRIMARY KEY (schedule=? AND task_id=?)",
		"oldest USING PRIMARY KEY (schedule=?)", byID}},
	"addOpen":    {Text: addOpen},
	"findOpen":   {Text: findOpen, By: []string{"tasks USING INDEX tasks_tick (schedule=?)"}},
	"reopenTask": {Text: reopenTask, By: []string{byID, "s USING COVERING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"hasTick":    {Text: hasTick, By: []string{"tasks USING COVERING INDEX tasks_tick (schedule=? AND tick=?)"}},
	"selectRuns": {Text: selectRuns, By: []string{"tasks USING COVERING INDEX tasks_tick (schedule=? AND tick>?)",
		"tasks USING COVERING INDEX tasks_tick (schedule=? AND tick=?)"}, Allow: []string{"SCAN ticks", "SCAN others"}},
}

// sharedTemplates are templates that several statements share.
var sharedTemplates = []string{"completeAll", "claimed", "claimJobs", "pendingQueues", "aboveArm", "belowArm",
	"aboveAndBelow"}

// roundTrips are statements that run only on servers, where each statement
// costs a round trip. They have no plan in this file, because it has only plans
// of SQLite. TestPostgreSQLPreparesEveryStatement prepares them.
var roundTrips = []string{"assertUnused", "assertCompleted", "completeTasks", "insertArrays", "selectLookAbove",
	"selectFirsts", "claimAbove"}
