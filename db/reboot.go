package db

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

// A schedule with the cron expression @reboot ticks once in each boot of a machine. Its column boots is a JSON array with the ids of the
// boots in which the schedule has ticked, or must not tick because it was paused or did not exist yet. The first worker that starts in a
// new boot adds the id of that boot to the array. If the schedule is not paused, the worker also makes it due.

// maxBoots is the number of boots that a schedule remembers. A schedule with @reboot must not be used by more machines than this.
const maxBoots = 200

// noteBoots sets the column boots of schedule [3] to [1], and the next tick of the schedule to [2].
var noteBoots = command(`UPDATE {schedules} SET boots = ?, next_at = ? WHERE name = ?`)

// selectBoots lists the boots in which a worker has run. The statement reads the whole table, which is small.
var selectBoots = query(`SELECT DISTINCT boot_id FROM {workers} WHERE boot_id <> '' LIMIT 100`)

// NoteBoot makes each schedule with @reboot due, unless the schedule has already had its tick in the given boot. It is idempotent.
func (d *DB) NoteBoot(ctx context.Context, boot string, now time.Time) error {
	list, err := readRows[scheduleRow](ctx, d, selectByName)
	if err != nil || !slices.ContainsFunc(list, func(r scheduleRow) bool { return r.unseen(boot) }) {
		return err
	}
	return d.update(ctx, full, func(t *tx) error {
		var rows []scheduleRow
		if err := t.list(&rows, selectByName); err != nil {
			return err
		}
		for i := range rows {
			r := &rows[i]
			if !r.unseen(boot) {
				continue
			}
			boots := append(r.boots(), boot)
			boots = boots[max(len(boots)-maxBoots, 0):]
			next := now
			if r.PausedAt != 0 {
				next = time.Time{}
			}
			if err := t.run(noteBoots, jsonText(boots), nullTime(next), r.Name); err != nil {
				return fmt.Errorf("schedule %s: %w", r.Name, err)
			}
		}
		return nil
	})
}

// unseen reports whether the schedule has the expression @reboot and has had no tick in this boot.
func (r *scheduleRow) unseen(boot string) bool {
	return lifecycle.AtBoot(r.Cron) && !slices.Contains(r.boots(), boot)
}

func (r *scheduleRow) boots() (list []string) {
	_ = json.Unmarshal([]byte(r.Boots), &list) // ignore invalid text, which only plain SQL can write; the schedule then ticks once more
	return list
}

// knownBoots returns the value of the column boots for a new schedule. With this value the schedule does not tick in the given boot, nor in
// any boot in which a worker has run.
func (t *tx) knownBoots(s *jobs.Schedule, boot string) (any, error) {
	if !lifecycle.AtBoot(s.Cron) {
		return nil, nil
	}
	var boots []string
	if err := t.list(&boots, selectBoots); err != nil {
		return nil, err
	}
	if boot != "" && !slices.Contains(boots, boot) {
		boots = append(boots, boot)
	}
	return jsonText(boots), nil
}
