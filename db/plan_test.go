package db

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/jobs"
)

func claimOf(n int) *statement {
	list := make([]ClaimJob, n)
	for i := range list {
		list[i].Job = "job" + strconv.Itoa(i)
	}
	return newClaimer("w", list, sqlite.ClaimJob).tasks
}

func peekOf(n int) *statement {
	list := make([]ClaimJob, n)
	for i := range list {
		list[i].Job = "job" + strconv.Itoa(i)
	}
	return newClaimer("w", list, sqlite.ClaimJob).peek
}

// plan is a statement with its expected query plan. EXPLAIN QUERY PLAN must have the texts in by. It may have scans and sorts only if they
// begin with a text in allow.
type plan struct {
	text  any // *statement, or a template
	by    []string
	allow []string
}

const (
	byID      = "tasks USING INTEGER PRIMARY KEY (rowid=?)"
	byRange   = "tasks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
	byOutput  = "output USING INDEX sqlite_autoindex_output_1 (task_id=? AND generation_id=?"
	byAttempt = "attempts USING PRIMARY KEY (task_id=?"
	byPause   = "pauses USING PRIMARY KEY (queue=?)"
)

// templateOf returns the template of a statement, or the text itself.
func templateOf(text any) string {
	if s, ok := text.(*statement); ok {
		return s.Template
	}
	return text.(string)
}

// plans has the statements of this package by their names.
var plans = map[string]plan{
	"insertTask":       {text: insertTask},
	"insertPlain":      {text: insertPlain},
	"insertOne":        {text: insertOne},
	"insertTasks2":     {insertTasks2, nil, []string{"SCAN 2-ROW VALUES CLAUSE"}},
	"insertTasks4":     {insertTasks4, nil, []string{"SCAN 4-ROW VALUES CLAUSE"}},
	"insertTasks8":     {insertTasks8, nil, []string{"SCAN 8-ROW VALUES CLAUSE"}},
	"insertTasks16":    {insertTasks16, nil, []string{"SCAN 16-ROW VALUES CLAUSE"}},
	"insertInput":      {text: insertInput},
	"replaceTask":      {text: replaceTask, by: []string{byID}},
	"insertAttempt":    {text: insertAttempt},
	"insertWorker":     {text: insertWorker},
	"insertLastOutput": {text: insertLastOutput},
	"insertOutput":     {insertOutput, []string{"USING INTEGER PRIMARY KEY (rowid=?)"}, []string{"SCAN CONSTANT ROW"}},
	"addCount":         {text: addCount},
	"addTotal":         {text: addTotal},
	"selectTotals":     {selectTotals, nil, []string{"SCAN totals"}}, // few rows: queues times jobs times results

	"claimArm":   {text: claimArm, by: []string{"INDEX tasks_pending (queue=? AND job=?)"}},
	"claimTasks": {claimOf(1), []string{"INDEX tasks_pending (queue=? AND job=?)", byID}, []string{"SCAN next"}},
	"suspectArm": {text: suspectArm, by: []string{"INDEX tasks_lost (queue=? AND job=?)"}},
	"sparse suspects": {newClaimer("w", make([]ClaimJob, 2), sqlite.ClaimJob).suspect, []string{"INDEX tasks_lost (queue=? AND job=?)",
		byID}, []string{"SCAN next"}},
	"selectSuspects": {selectSuspects, nil, []string{"SCAN tasks USING INDEX tasks_lost"}},
	"selectQueues":   {selectQueues, []string{"COVERING INDEX tasks_pending (queue>?)"}, []string{"SCAN names"}},
	"selectDue": {selectDue, []string{"COVERING INDEX tasks_due", "INDEX tasks_expiry", "COVERING INDEX limits_due"},
		[]string{"SCAN CONSTANT ROW"}},
	"firstDue":       {text: firstDue, by: []string{"COVERING INDEX tasks_due (run_at<?)"}},
	"selectOrdered":  {text: selectOrdered, by: []string{"COVERING INDEX tasks_due (run_at<?)", byID}},
	"setBackTasks":   {text: setBackTasks, by: []string{"INDEX tasks_due (run_at>?)"}},
	"setBackNew":     {text: setBackNew, by: []string{"INDEX tasks_due (run_at>?)"}},
	"setBackEnds":    {text: setBackEnds, by: []string{"INDEX tasks_finished (finished_at>?)"}},
	"setBackWorkers": {setBackWorkers, nil, []string{"SCAN workers"}},
	"setBackLimits":  {setBackLimits, nil, []string{"SCAN limits"}},
	"promoteTasks":   {text: promoteTasks, by: []string{"COVERING INDEX tasks_due (run_at<?)", byID}},
	"expireTasks":    {text: expireTasks, by: []string{"INDEX tasks_expiry (expires_at>? AND expires_at<?)", byID}},
	"selectUnique":   {text: selectUnique, by: []string{"INDEX tasks_unique (unique_key=?)"}},
	"selectInput":    {text: selectInput, by: []string{"inputs USING INTEGER PRIMARY KEY (rowid=?)"}},
	"finishTask":     {text: finishTask, by: []string{byID}},
	"completeTask":   {text: completeTask, by: []string{byID}},
	"completeSome":   {completeRows(16), []string{byID}, []string{"SCAN d", "SCAN 16 CONSTANT ROWS"}},
	"releaseTask":    {text: releaseTask, by: []string{byID, byAttempt}},
	"selectRefused":  {text: selectRefused, by: []string{byID, byAttempt}},

	"selectCompleted": {selectCompleted, []string{byAttempt, byID}, []string{"SCAN CONSTANT ROW", "SCAN attempts"}},
	"selectTask":      {text: selectTask, by: []string{byID}},
	"insertStep":      {insertStep, []string{"USING INTEGER PRIMARY KEY (rowid=?)"}, []string{"SCAN CONSTANT ROW"}},
	"selectSteps":     {text: selectSteps, by: []string{"steps USING INDEX sqlite_autoindex_steps_1 (task_id=?)"}},
	"deleteSteps":     {text: deleteSteps, by: []string{"steps USING INDEX sqlite_autoindex_steps_1 (task_id=?)"}},
	"setProgress":     {setProgress, []string{"USING INTEGER PRIMARY KEY (rowid=?)"}, []string{"SCAN CONSTANT ROW"}},
	"setLastProgress": {text: setLastProgress},

	"renewLeases":          {renewLeases, []string{"tasks_running (worker=? AND rowid=?)"}, []string{"SCAN json_each"}},
	"selectOwned":          {text: selectOwned, by: []string{"INDEX tasks_running (worker=?)"}},
	"selectCancelRequests": {text: selectCancelRequests, by: []string{"INDEX tasks_running (worker=?)"}},
	"selectLeases": {selectLeases, []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"},
		[]string{"SCAN tasks USING INDEX tasks_running"}},
	"revokeClaim":   {text: revokeClaim, by: []string{byID}},
	"selectRevoked": {text: selectRevoked, by: []string{byID}},
	"selectClaim":   {text: selectClaim, by: []string{byID}},
	"touchWorker":   {text: touchWorker, by: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"loseWorker":    {text: loseWorker, by: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"selectClaims":  {text: selectClaims, by: []string{"INDEX tasks_running (worker=?)"}},
	"selectOwners": {selectOwners, []string{"COVERING INDEX tasks_running (worker=?)", "workers USING INTEGER PRIMARY KEY (rowid=?)"},
		[]string{"SCAN workers USING INDEX workers_live", "SCAN tasks USING COVERING INDEX tasks_running"}}, // both are few
	"drainWorker": {text: drainWorker, by: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"endWorker":   {text: endWorker, by: []string{"workers USING INTEGER PRIMARY KEY (rowid=?)"}},
	"selectWorkers": {selectWorkers, []string{"workers USING INDEX workers_live (beat_at>?)", "COVERING INDEX tasks_running (worker=?)"},
		[]string{"SCAN claims", "USE TEMP B-TREE FOR ORDER BY"}}, // there are few workers

	"peekTasks": {peekOf(5), []string{"INDEX tasks_pending (queue=? AND job=?)", byID}, []string{"SCAN first"}},
	"selectPriorities": {selectPriorities, []string{"COVERING INDEX tasks_pending (queue=? AND job=? AND priority>?)"},
		[]string{"SCAN levels"}},
	"selectLevel": {text: selectLevel, by: []string{"INDEX tasks_pending (queue=? AND job=? AND priority=?)"}},
	"claimThese":  {claimThese, []string{byID}, []string{"SCAN next", "SCAN json_each"}},

	"selectFeatures": {selectFeatures, []string{},
		[]string{"SCAN CONSTANT ROW", "SCAN dependencies USING COVERING INDEX dependencies_open", "SCAN limits", "SCAN pauses"}},
	"insertDependency": {text: insertDependency},
	"selectFollowers": {text: selectFollowers, by: []string{"COVERING INDEX dependencies_on (on_id=? AND open=?)", byID,
		"other USING COVERING INDEX dependencies_open (task_id=?"}},
	"closeOn":  {text: closeOn, by: []string{"INDEX dependencies_on (on_id=? AND open=?)"}},
	"closeAll": {text: closeAll, by: []string{"dependencies USING PRIMARY KEY (task_id=?)"}}, // runs once for each task
	"reopen":   {text: reopen, by: []string{"dependencies USING PRIMARY KEY (task_id=?)", byID}},
	"selectRevivable": {selectRevivable, []string{"COVERING INDEX dependencies_on (on_id=?)", byID,
		"other USING PRIMARY KEY (task_id=?)"}, []string{"USE TEMP B-TREE FOR ORDER BY"}},
	"adoptTask":          {text: adoptTask, by: []string{byID}},
	"refuseTask":         {text: refuseTask, by: []string{byID}},
	"cancelDependent":    {text: cancelDependent, by: []string{byID}},
	"freeDependent":      {text: freeDependent, by: []string{byID}},
	"selectDependencies": {text: selectDependencies, by: []string{"dependencies USING PRIMARY KEY (task_id=?)", byID}},
	"selectDependents": {selectDependents, []string{"COVERING INDEX dependencies_on (on_id=?)", byID},
		[]string{"USE TEMP B-TREE FOR ORDER BY"}},
	"selectUpstream": {text: selectUpstream, by: []string{"dependencies USING PRIMARY KEY (task_id=?)", byID}},

	"laneHeld":    {laneHeld, []string{"INDEX tasks_lane (lane=?)"}, []string{"SCAN CONSTANT ROW"}},
	"laneHolder":  {text: laneHolder, by: []string{"INDEX tasks_lane (lane=?)"}},
	"laneRunning": {text: laneRunning, by: []string{"INDEX tasks_lane (lane=?)"}},
	"laneNext":    {text: laneNext, by: []string{"INDEX tasks_blocked (lane=? AND waits=?)"}},
	"unblockTask": {text: unblockTask, by: []string{byID}},
	"startHolder": {text: startHolder, by: []string{byID}},
	"delayHolder": {text: delayHolder, by: []string{byID}},
	"blockTask":   {text: blockTask, by: []string{byID}},

	"selectAdmission": {text: selectAdmission, by: []string{"limits USING PRIMARY KEY (kind=?)"}},
	"selectPaused":    {selectPaused, nil, []string{"SCAN pauses"}},
	"selectLimit":     {text: selectLimit, by: []string{"limits USING PRIMARY KEY (kind=? AND name=?)"}},
	"selectLimits":    {selectLimits, nil, []string{"SCAN limits"}},
	"countStarted":    {countStarted, nil, []string{"SCAN tasks USING INDEX tasks_running", "USE TEMP B-TREE FOR GROUP BY"}},
	"saveBucket":      {text: saveBucket, by: []string{"limits USING PRIMARY KEY (kind=? AND name=?)"}},
	"setLimit":        {text: setLimit},
	"removeLimit":     {text: removeLimit, by: []string{"limits USING PRIMARY KEY (kind=? AND name=?)"}},
	"setLaneDue":      {text: setLaneDue, by: []string{"limits USING PRIMARY KEY (kind=? AND name=?)"}},
	"selectFreeLanes": {text: selectFreeLanes, by: []string{"COVERING INDEX limits_due (due_at<?)"}},
	"clearLaneDue":    {text: clearLaneDue, by: []string{"limits_due (due_at<?)"}},
	"somePending":     {somePending, []string{"COVERING INDEX tasks_pending (queue=?)"}, []string{"SCAN CONSTANT ROW"}},
	"somePendingJob":  {somePendingJob, []string{"COVERING INDEX tasks_pending (queue=? AND job=?)"}, []string{"SCAN CONSTANT ROW"}},

	"cancelTask":     {text: cancelTask, by: []string{byID}},
	"askCancel":      {text: askCancel, by: []string{byID}},
	"retryFinished":  {text: retryFinished, by: []string{byID, "other USING INDEX tasks_unique (unique_key=?)"}},
	"hastenTask":     {text: hastenTask, by: []string{byID}},
	"selectState":    {text: selectState, by: []string{byID}},
	"deleteTask":     {text: deleteTask, by: []string{byID}},
	"deleteAttempts": {text: deleteAttempts, by: []string{byAttempt}},
	"deleteOutputs":  {text: deleteOutputs, by: []string{"output USING INDEX sqlite_autoindex_output_1 (task_id=?)"}},
	"deleteWaiting":  {text: deleteWaiting, by: []string{"dependencies USING PRIMARY KEY (task_id=?)"}},
	"selectStanding": {text: selectStanding, by: []string{byID}},
	"deleteInput":    {text: deleteInput, by: []string{"inputs USING INTEGER PRIMARY KEY (rowid=?)"}},

	// These scans read one row from an end of an index or table.
	"selectMaxTimestamp": {selectMaxTimestamp, []string{"COVERING INDEX tasks_finished"},
		[]string{"SCAN workers", "SCAN tasks", "SCAN CONSTANT ROW"}},
	"selectLastHeartbeat": {selectLastHeartbeat, nil, []string{"SCAN workers"}},

	"selectOld":       {text: selectOld, by: []string{"INDEX tasks_finished (finished_at>? AND finished_at<?)"}},
	"selectOldFailed": {text: selectOldFailed, by: []string{"INDEX tasks_failed (finished_at<?)"}},
	"pruneTask":       {text: pruneTask, by: []string{byID}},
	"pruneWorkers":    {pruneWorkers, []string{"COVERING INDEX tasks_running (worker=?)"}, []string{"SCAN workers"}}, // runs once an hour
	// These statements run once an hour and read the counters of two days.
	"sumUpHours":    {sumUpHours, nil, []string{"SCAN counters", "USE TEMP B-TREE FOR GROUP BY"}},
	"deleteMinutes": {deleteMinutes, nil, []string{"SCAN counters"}},
	"deleteHours":   {deleteHours, nil, []string{"SCAN counter_hours"}},
	"selectHistory": {selectHistory, nil, []string{"SCAN counters", "SCAN counter_hours"}},
	// This statement reads the minutes of two days and the hours of a year.
	"selectThroughput": {selectThroughput, nil, []string{"SCAN counters", "SCAN counter_hours", "USE TEMP B-TREE FOR GROUP BY"}},
	"selectSamples": {selectSamples, []string{byID, "ended USING COVERING INDEX tasks_finished (finished_at>? AND finished_at<?)"},
		[]string{"SCAN stretches", "SCAN CONSTANT ROW"}},
	"selectRecent": {selectRecent, []string{"INDEX tasks_finished (finished_at>?)"}, []string{"SCAN recent"}},
	"countStarts":  {countStarts, []string{"INDEX tasks_finished (finished_at>?)", byAttempt}, []string{"SCAN recent"}},
	"countOpenStarts": {countOpenStarts, []string{byAttempt, "INDEX tasks_running"},
		[]string{"SCAN tasks USING COVERING INDEX tasks_due", "SCAN tasks USING INDEX tasks_running", "SCAN CONSTANT ROW"}},

	"selectLastID":  {selectLastID, nil, []string{"SEARCH tasks", "SCAN tasks"}}, // reads one row from the end
	"selectNextIDs": {text: selectNextIDs, by: []string{"tasks USING INTEGER PRIMARY KEY (rowid>?)"}},
	"copyThese": {text: fmt.Sprintf(copyThese, "output", "task_id", "task_id, generation_id, seq"),
		by: []string{"output USING INDEX sqlite_autoindex_output_1 (task_id>? AND task_id<?)"}},
	"copyAll":         {fmt.Sprintf(copyAll, "limits", "kind, name"), nil, []string{"SCAN limits"}},
	"clearRows":       {fmt.Sprintf(clearRows, "totals"), nil, []string{"SCAN totals"}},
	"selectHighestID": {selectHighestID, nil, []string{"SEARCH tasks", "SEARCH last_ids", "SCAN ids"}}, // reads one row from each end
	"deleteRequest":   {text: deleteRequest, by: []string{"cancel_requests USING INTEGER PRIMARY KEY (rowid=?)"}},
	"deleteProgress":  {text: deleteProgress, by: []string{"progress_reports USING INTEGER PRIMARY KEY (rowid=?)"}},
	"selectAfter":     {text: selectAfter, by: []string{"dependencies USING PRIMARY KEY (task_id=?)"}},
	"copyRow":         {text: fmt.Sprintf(copyRow, "pauses", `"queue", "paused_at", "paused_by"`, "?, ?, ?")},
	"endWorkers":      {endWorkers, []string{"workers USING INDEX workers_live"}, []string{"SCAN workers"}},
	"countRows":       {fmt.Sprintf(countRows, "tasks"), nil, []string{"SCAN tasks"}}, // runs once, at the end of a migration
	"sumTasks":        {sumTasks, nil, []string{"SCAN tasks", "USE TEMP B-TREE FOR GROUP BY"}},
	"selectClaimed": {selectClaimed, []string{"INDEX tasks_running"}, []string{"SCAN tasks USING COVERING INDEX tasks_running",
		"SCAN tasks USING INDEX tasks_running"}},
	// This statement reads the first row of each table.
	"selectSome": {selectSome, nil, []string{"SCAN tasks", "SCAN schedules", "SCAN limits", "SCAN pauses", "SCAN CONSTANT ROW"}},

	"insertPause":      {text: insertPause},
	"deletePause":      {text: deletePause, by: []string{byPause}},
	"deletePauses":     {deletePauses, nil, []string{"SCAN pauses"}}, // few rows: at most one for each queue
	"setDeletionPause": {text: setDeletionPause},
	"endDeletionPause": {text: endDeletionPause, by: []string{byPause}},
	"selectPauses":     {selectPauses, nil, []string{"SCAN pauses"}},

	"deleteOutput":     {text: deleteOutput, by: []string{byOutput}},
	"cutOutput":        {text: cutOutput, by: []string{byOutput}},
	"selectOutput":     {text: selectOutput, by: []string{byOutput}},
	"selectLastOutput": {text: selectLastOutput, by: []string{byOutput}},
	"selectOutputTail": {text: selectOutputTail, by: []string{byOutput, byAttempt}},
	"selectRunning":    {selectRunning, []string{byID}, []string{"SCAN CONSTANT ROW"}},

	"selectTasks":  {selectTasks, nil, []string{"SCAN tasks"}}, // see below for the plan with each filter
	"selectIDs":    {selectIDs, nil, []string{"SCAN tasks"}},
	"selectSorted": {fmt.Sprintf(selectSorted, "", ""), []string{byID}, []string{"SCAN tasks"}}, // see below for the plan with each filter
	"countTasks":   {countTasks, nil, []string{"SCAN tasks"}},
	"countSome":    {fmt.Sprintf(countSome, ""), nil, []string{"SCAN tasks", "SCAN part"}}, // see below for the plan with states
	"selectAttempts": {text: selectAttempts, by: []string{byAttempt, byID},
		allow: []string{"SCAN ended", "USE TEMP B-TREE FOR ORDER BY"}},
	"previousJobs":       {text: previousJobs, by: []string{byRange}},
	"previousLabels":     {text: previousLabels, by: []string{byRange}},
	"previousArgs":       {text: previousArgs, by: []string{byRange}},
	"previousTicks":      {text: previousTicks, by: []string{"tasks USING INDEX tasks_tick (schedule=? AND tick<?)"}},
	"countQueuePosition": {text: countQueuePosition, by: []string{"COVERING INDEX tasks_pending (queue=?)"}},
	"countPending":       {countPending, nil, []string{"SCAN tasks USING COVERING INDEX tasks_pending"}},
	"countDue":           {countDue, nil, []string{"SCAN tasks USING COVERING INDEX tasks_due", "USE TEMP B-TREE FOR GROUP BY"}},
	"countRunning":       {countRunning, nil, []string{"SCAN tasks USING INDEX tasks_running", "USE TEMP B-TREE FOR GROUP BY"}},
	"countBlocked":       {countBlocked, nil, []string{"SCAN tasks USING COVERING INDEX tasks_blocked", "USE TEMP B-TREE FOR GROUP BY"}},
	"countEnded":         {countEnded, nil, []string{"SCAN counters"}},
	"countQueues": {countQueues, nil, []string{"SCAN tasks USING COVERING INDEX tasks_pending",
		"SCAN tasks USING COVERING INDEX tasks_due", "SCAN tasks USING INDEX tasks_running",
		"SCAN tasks USING COVERING INDEX tasks_blocked", "SCAN counters", "USE TEMP B-TREE FOR GROUP BY"}},
	"countFailed": {countFailed, []string{"INDEX tasks_failed (finished_at>?)"}, []string{"CO-ROUTINE newest", "SCAN newest",
		"USE TEMP B-TREE FOR GROUP BY"}},
	"finishedSince":   {finishedSince, []string{"COVERING INDEX tasks_finished (finished_at>?)"}, []string{"SCAN part"}},
	"nextJob":         {text: nextJob, by: []string{"COVERING INDEX tasks_pending (queue=? AND job>?)"}},
	"nextPriority":    {text: nextPriority, by: []string{"COVERING INDEX tasks_pending (queue=? AND job=? AND priority<?)"}},
	"selectHead":      {text: selectHead, by: []string{"INDEX tasks_pending (queue=? AND job=? AND priority=?)"}},
	"selectSchedules": {selectSchedules, []string{byID}, []string{"SCAN schedules"}},
	"selectByName": {selectByName, []string{"SCAN schedules USING INDEX sqlite_autoindex_schedules_1"},
		[]string{"SCAN schedules USING INDEX"}},
	"selectNamed":         {text: selectNamed, by: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"selectTicking":       {text: selectTicking, by: []string{"s USING INDEX schedules_next (next_at<?)"}},
	"selectNextTick":      {selectNextTick, []string{"COVERING INDEX schedules_next"}, []string{"SCAN CONSTANT ROW"}},
	"insertSchedule":      {text: insertSchedule},
	"insertScheduleInput": {text: insertScheduleInput, by: []string{}},
	"deleteScheduleInput": {text: deleteScheduleInput,
		by: []string{"schedule_inputs USING INDEX sqlite_autoindex_schedule_inputs_1 (name=?)"}},
	"deleteSchedule": {text: deleteSchedule, by: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"pauseSchedule":  {text: pauseSchedule, by: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"resumeSchedule": {text: resumeSchedule, by: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"moveTick":       {text: moveTick, by: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"noteTask":       {text: noteTask, by: []string{"schedules USING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"selectOpen":     {text: selectOpen, by: []string{"schedule_open USING PRIMARY KEY (schedule=?)", byID}},
	"dropClosed":     {text: dropClosed, by: []string{"schedule_open USING PRIMARY KEY (schedule=?)", byID}},
	"addOpen":        {text: addOpen},
	"findOpen":       {text: findOpen, by: []string{"tasks USING INDEX tasks_tick (schedule=?)"}},
	"reopenTask":     {text: reopenTask, by: []string{byID, "s USING COVERING INDEX sqlite_autoindex_schedules_1 (name=?)"}},
	"hasTick":        {text: hasTick, by: []string{"tasks USING COVERING INDEX tasks_tick (schedule=? AND tick=?)"}},
	"selectRuns": {selectRuns, []string{"tasks USING COVERING INDEX tasks_tick (schedule=? AND tick>?)",
		"tasks USING COVERING INDEX tasks_tick (schedule=? AND tick=?)"}, []string{"SCAN ticks", "SCAN others"}},
	"sparse blocked": {sparse[jobs.Blocked], nil, []string{"SCAN tasks USING COVERING INDEX tasks_blocked", "SCAN part"}},
	"sparse pending": {sparse[jobs.Pending], nil, []string{"SCAN tasks USING COVERING INDEX tasks_pending", "SCAN part"}},
	"sparse running": {sparse[jobs.Running], nil, []string{"SCAN tasks USING COVERING INDEX tasks_running", "SCAN part"}},
	"sparse failed":  {sparse[jobs.Failed], nil, []string{"SCAN tasks USING COVERING INDEX tasks_failed", "SCAN part"}},
	"sparse due":     {sparse[jobs.Scheduled], nil, []string{"SCAN tasks USING COVERING INDEX tasks_due", "SCAN part"}},
}

// parts are templates that several statements share.
var parts = []string{"completeAll", "claimed"}

// onServers are statements that run only on PostgreSQL. TestPostgreSQLPreparesEveryStatement prepares them.
var onServers = []string{"insertTasks32", "insertTasks64", "insertTasks128", "assertUnused", "assertCompleted", "completeTasks"}

var numbered = regexp.MustCompile(`\?([0-9]+)`)

// anyArgs returns arguments for a statement. Their values are arbitrary, because they do not change the plan.
func anyArgs(text string) []any {
	args := make([]any, strings.Count(text, "?"))
	if all := numbered.FindAllStringSubmatch(text, -1); all != nil {
		most := 0
		for _, match := range all {
			n, _ := strconv.Atoi(match[1])
			most = max(most, n)
		}
		args = args[:most]
	}
	for i := range args {
		args[i] = "[]" // valid JSON, for statements that take lists
	}
	return args
}

// explained returns the lines of a statement's plan.
func explained(t *testing.T, d *DB, template any) []string {
	t.Helper()
	text := d.sql.Render(templateOf(template))
	rows, err := d.read.Queryx("EXPLAIN QUERY PLAN "+text, anyArgs(text)...)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// check reports expected texts that are missing in a plan, and scans and sorts that are not allowed.
func (p plan) check(t *testing.T, name string, lines []string) {
	t.Helper()
	whole := strings.Join(lines, "\n\t")
	for _, by := range p.by {
		if !strings.Contains(whole, by) {
			t.Errorf("%s does not find its rows by %q:\n\t%s", name, by, whole)
		}
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "SCAN ") && !strings.HasPrefix(line, "USE TEMP B-TREE") {
			continue
		}
		if !slices.ContainsFunc(p.allow, func(allowed string) bool { return strings.HasPrefix(line, allowed) }) {
			t.Errorf("%s: %s:\n\t%s", name, line, whole)
		}
	}
}

func openTest(t *testing.T) *DB {
	t.Helper()
	d, err := Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), Options{Create: true, Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestEachStatementFindsItsRowsByAnIndex(t *testing.T) {
	d := openTest(t)
	raw, err := sqlite.Connect(d.Path(), "rw") // adds the table that only a database of another program has
	if err != nil {
		t.Fatal(err)
	}
	raw.MustExec(sqlite.CreateMarks)
	raw.Close()
	for name, p := range plans {
		p.check(t, name, explained(t, d, p.text))
	}
}

func TestAClaimTouchesPendingTasksOnly(t *testing.T) {
	d := openTest(t)
	for _, n := range []int{1, 2, 5, 30} {
		lines := explained(t, d, claimOf(n))
		plan{by: []string{byID}, allow: []string{"SCAN next"}}.check(t, "a claim for "+strconv.Itoa(n)+" jobs", lines)
		arms := 0
		for _, line := range lines {
			if !strings.Contains(line, "tasks") {
				continue
			}
			if strings.Contains(line, "INDEX tasks_pending (queue=? AND job=?)") {
				arms++
			} else if !strings.HasSuffix(line, byID) {
				t.Errorf("a claim for %d jobs: %s", n, line)
			}
		}
		if arms != n {
			t.Errorf("a claim for %d jobs has %d arms:\n\t%s", n, arms, strings.Join(lines, "\n\t"))
		}
	}
}

// TestNoTriggerIsInTheWayOfAClaimOrOfACompletion checks that these statements run no trigger. A trigger would cost a tenth of the time of
// a task even if its WHEN is false, because SQLite then prepares to undo the statement.
func TestNoTriggerIsInTheWayOfAClaimOrOfACompletion(t *testing.T) {
	d := openTest(t)
	for s, want := range map[*statement]bool{claimOf(1): false, claimThese: false, completeTask: false, retryFinished: true} {
		text := d.sql.Text(s)
		rows, err := d.read.Queryx("EXPLAIN "+text, anyArgs(text)...)
		if err != nil {
			t.Fatal(err)
		}
		has := false
		for rows.Next() {
			step, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			has = has || step[1] == "Program"
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || has != want {
			t.Errorf("a trigger: %v, want %v (%v)\n%s", has, want, err, text)
		}
	}
}

func TestListsWalkTheTableFromItsEndOrAnIndex(t *testing.T) {
	d := openTest(t)
	const newest, sorted = " ORDER BY tasks.id DESC LIMIT 50", " ORDER BY +tasks.id DESC LIMIT 50"
	for name, c := range map[string]struct {
		filter jobs.Filter
		order  string
		plan   plan
	}{
		"all": {jobs.Filter{}, newest, plan{allow: []string{"SCAN tasks"}}},
		"one": {jobs.Filter{IDs: []int64{1}}, newest,
			plan{by: []string{byID}, allow: []string{"SCAN json_each", "USE TEMP B-TREE FOR ORDER BY"}}},
		"a state of many": {jobs.Filter{States: []jobs.State{jobs.Completed}}, newest, plan{allow: []string{"SCAN tasks"}}},
		"pending, few": {jobs.Filter{States: []jobs.State{jobs.Pending}}, sorted,
			plan{allow: []string{"SCAN tasks USING INDEX tasks_pending", "SCAN tasks USING COVERING INDEX tasks_pending",
				"USE TEMP B-TREE FOR ORDER BY"}}},
		"pending, many": {jobs.Filter{States: []jobs.State{jobs.Pending}}, newest, plan{allow: []string{"SCAN tasks"}}},
		"running": {jobs.Filter{States: []jobs.State{jobs.Running}}, sorted,
			plan{allow: []string{"SCAN tasks USING INDEX tasks_running", "SCAN tasks USING COVERING INDEX tasks_running",
				"USE TEMP B-TREE FOR ORDER BY"}}},
		"failed": {jobs.Filter{States: []jobs.State{jobs.Failed}}, sorted,
			plan{allow: []string{"SCAN tasks USING INDEX tasks_failed", "SCAN tasks USING COVERING INDEX tasks_failed",
				"USE TEMP B-TREE FOR ORDER BY"}}},
		"failed lately": {jobs.Filter{States: []jobs.State{jobs.Failed}, Since: time.Unix(9, 0)}, sorted,
			plan{by: []string{"tasks_failed (finished_at>?)"}, allow: []string{"USE TEMP B-TREE FOR ORDER BY"}}},
		"finished lately": {jobs.Filter{States: jobs.Finished(), Since: time.Unix(9, 0)}, sorted,
			plan{by: []string{"tasks_finished (finished_at>?)"}, allow: []string{"USE TEMP B-TREE FOR ORDER BY"}}},
		"the page before": {jobs.Filter{Before: 9}, newest, plan{by: []string{"tasks USING INTEGER PRIMARY KEY (rowid<?)"}}},
		"a schedule": {jobs.Filter{Schedule: "s"}, sorted, plan{by: []string{"INDEX tasks_tick (schedule=?)"},
			allow: []string{"USE TEMP B-TREE FOR ORDER BY"}}},
		"what came since": {jobs.Filter{After: 9}, newest, plan{by: []string{"tasks USING INTEGER PRIMARY KEY (rowid>?)"}}},
	} {
		w := where(c.filter)
		for _, text := range []string{listText(w, c.order, Page{Limit: 50}), selectIDs + w.String() + c.order} {
			lines := explained(t, d, text)
			if strings.Contains(text, "IN (SELECT tasks.id") &&
				!slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, byID) }) {
				t.Errorf("%s reads whole rows to sort them: %v", name, lines)
			}
			c.plan.check(t, name, lines)
			if c.order == newest && slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "INDEX tasks_") }) {
				t.Errorf("%s: an index instead of the table's end: %v", name, lines)
			}
		}
	}
}

func TestCountsUpToALimitWalkAnIndex(t *testing.T) {
	d := openTest(t)
	for state, index := range map[jobs.State]string{jobs.Pending: "tasks_pending", jobs.Running: "tasks_running",
		jobs.Failed:    "tasks_failed",
		jobs.Scheduled: "tasks_due", jobs.Retrying: "tasks_due"} {
		lines := explained(t, d, fmt.Sprintf(countSome, where(jobs.Filter{States: []jobs.State{state}})))
		plan{allow: []string{"SCAN tasks USING COVERING INDEX " + index, "SCAN part"}}.check(t, "count of "+string(state), lines)
	}
}

func TestTheOrderOfAListIsChosenByHowManyRowsThereAre(t *testing.T) {
	d := openTest(t)
	order := func(f jobs.Filter) string {
		t.Helper()
		text, err := d.order(t.Context(), f, Page{Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, states := range [][]jobs.State{{jobs.Pending}, {jobs.Running, jobs.Failed}, {jobs.Scheduled, jobs.Retrying},
		{jobs.Pending, jobs.Blocked}} {
		if text := order(jobs.Filter{States: states}); !strings.Contains(text, "+tasks.id") {
			t.Errorf("%v, few of them: %s", states, text)
		}
	}
	for _, states := range [][]jobs.State{nil, {jobs.Completed}, jobs.Finished(), {jobs.Pending, jobs.Completed}} {
		if text := order(jobs.Filter{States: states}); strings.Contains(text, "+") {
			t.Errorf(`%v: got %s; want not Contains(text, "+")`, states, text)
		}
	}
	if text, _ := d.order(t.Context(), jobs.Filter{}, Page{Oldest: true}); strings.Contains(text, "DESC") ||
		strings.Contains(text, "LIMIT") {
		t.Errorf(`got %+v; want not Contains(text, "DESC"), not Contains(text, "LIMIT")`, text)
	}
}

// sqlVerb matches the beginning of a statement that has a plan. Pragmas and the ends of transactions have none.
var sqlVerb = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|REPLACE)\s`)

func TestThePlanOfEveryStatementIsKnown(t *testing.T) {
	known := maps.Clone(plans)
	for _, name := range slices.Concat(onServers, parts) {
		known[name] = plan{}
	}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		named := map[ast.Node]bool{} // first literals of declared statements, which must be in plans
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range spec.Values {
				template := templateIn(value)
				switch first := leftmost(template).(type) {
				case *ast.Ident: // begins with the text of another statement
					if _, ok := plans[first.Name]; !ok && template == value && !slices.Contains(onServers, first.Name) {
						continue
					}
				case *ast.BasicLit:
					if !sqlVerb.MatchString(unquote(first)) && (template == value || strings.HasPrefix(unquote(first), "PRAGMA") ||
						strings.HasPrefix(unquote(first), "BEGIN") || unquote(first) == "COMMIT" || unquote(first) == "ROLLBACK") {
						continue
					}
					named[first] = true
				default:
					continue
				}
				if _, ok := known[spec.Names[i].Name]; !ok {
					t.Errorf("%s: the plan of %s is not checked", name, spec.Names[i].Name)
				}
				delete(known, spec.Names[i].Name)
			}
			return true
		})
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if ok && !named[n] && sqlVerb.MatchString(unquote(literal)) && !slices.ContainsFunc(slices.Collect(maps.Values(sparse)),
				func(s *statement) bool { return s.Template == unquote(literal) }) {
				t.Errorf("%s: a statement that is no const: %.60s", name, unquote(literal))
			}
			return true
		})
	}
	for name := range known {
		if !strings.HasPrefix(name, "sparse ") {
			t.Errorf("there is no statement %s", name)
		}
	}
}

// templateIn returns the argument of a call of query or command. It returns any other expression unchanged.
func templateIn(e ast.Expr) ast.Expr {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		if name, ok := call.Fun.(*ast.Ident); ok && (name.Name == "query" || name.Name == "command") {
			return call.Args[0]
		}
	}
	return e
}

// leftmost returns the first operand of a concatenation.
func leftmost(e ast.Expr) ast.Expr {
	for {
		sum, ok := e.(*ast.BinaryExpr)
		if !ok {
			return e
		}
		e = sum.X
	}
}

func unquote(literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}
