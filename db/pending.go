package db

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strconv"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// listLevel reads the newest pending tasks of queue [1], job [2] and priority [3] with ids below [4] and above [5]. Index: tasks_pending,
// whose last column is the id.
var listLevel = query(selectTasks + ` WHERE tasks.state = 'pending' AND tasks.queue = ?1 AND tasks.job = ?2 AND {priority_3}
	AND tasks.id < ?4 AND tasks.id > ?5 ORDER BY tasks.priority, tasks.id DESC{limit}`)

// maxLevels is the largest number of levels (see pendingLevel) that listPending reads. It needs one statement for each level.
const maxLevels = 100

// pendingLevel is one level of a queue: a job and a priority that pending tasks of the queue have.
type pendingLevel struct {
	job      string
	priority int64
}

// pendingLevels returns the levels of a queue: each job and priority that its pending tasks have. The parameter "most" is the maximum
// number of levels. pendingLevels finds each level by an index seek.
func (d *DB) pendingLevels(ctx context.Context, queue string, most int) (list []pendingLevel, err error) {
	for job := ""; ; {
		next, err := readValue[text](ctx, d, nextJob, queue, job)
		if err != nil || next == "" {
			return list, err
		}
		job = string(next)
		for priority := int64(1) << 32; ; {
			lower, err := readValue[sql.NullInt64](ctx, d, nextPriority, queue, job, priority)
			if err != nil {
				return nil, err
			}
			if !lower.Valid {
				break
			}
			if priority = lower.Int64; len(list) == most {
				return list, nil
			}
			list = append(list, pendingLevel{job, priority})
		}
	}
}

// onlyPending reports whether a filter selects pending tasks only, and has no conditions except for queues, jobs and ids.
func onlyPending(f jobs.Filter) bool {
	return slices.Equal(f.States, []jobs.State{jobs.Pending}) && f.IDs == nil && f.Batch == 0 && f.Schedule == "" && !f.Paused &&
		!comparesText(f) && f.Since.IsZero() && f.Until.IsZero() && f.FinishedBefore.IsZero()
}

// listPending returns the newest tasks that a filter for pending tasks selects. It reads only the newest tasks of each level, and merges
// them. A level is a job and a priority of a queue. The result "whole" is false if the queues have more than maxLevels levels.
func (d *DB) listPending(ctx context.Context, f jobs.Filter, limit int) (tasks []jobs.Task, whole bool, err error) {
	var queues []string
	for _, queue := range f.Queues {
		queues = append(queues, noNUL(queue))
	}
	if len(f.Queues) == 0 {
		if queues, err = readRows[string](ctx, d, selectQueues); err != nil {
			return nil, false, err
		}
	}
	slices.Sort(queues)
	statement := listLevel.With(sqltext.Parts{"limit": " LIMIT " + strconv.Itoa(limit)})
	looked, before, after := 0, cmp.Or(f.Before, math.MaxInt64), f.After
	for _, queue := range slices.Compact(queues) {
		levels, err := d.pendingLevels(ctx, queue, maxLevels-looked+1)
		if looked += len(levels); err != nil || looked > maxLevels {
			return nil, false, err
		}
		for _, l := range levels {
			if len(f.Jobs) > 0 && !slices.Contains(f.Jobs, l.job) {
				continue
			}
			list, err := readAs(ctx, d, (*row).task, statement, queue, l.job, l.priority, before, after)
			if err != nil {
				return nil, false, err
			}
			tasks = append(tasks, list...)
			slices.SortFunc(tasks, func(a, b jobs.Task) int { return cmp.Compare(b.ID, a.ID) })
			if len(tasks) >= limit {
				tasks = tasks[:limit]
				after = tasks[limit-1].ID
			}
		}
	}
	return tasks, true, nil
}
