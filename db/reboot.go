package db

import "time"

// noteBoot makes the schedules with @reboot due at [2] for the boot with the id
// [1], unless they are paused. A schedule keeps the id of the last boot in
// which it has ticked, or was added. The rows of workers tell the boots of
// other machines that use the database, too.
var noteBoot = command(`UPDATE {schedules} SET boot = ?1, next_at = CASE WHEN paused_at IS NULL THEN CAST(?2 AS bigint) END
WHERE lower(trim(cron)) = '@reboot' AND coalesce(boot, '') <> ?1
	AND NOT EXISTS (SELECT 1 FROM {workers} WHERE boot_id = ?1)`)

// noteBoot is called before a worker of the boot is added, in the same
// transaction. So each boot makes a schedule due once.
func (t *tx) noteBoot(boot string, now time.Time) error {
	if boot == "" { // the system has no ids of boots
		return nil
	}
	return t.run(noteBoot, boot, now.UnixMilli())
}
