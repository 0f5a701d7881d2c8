//go:build !linux

package sqlite

import "time"

// pollEvery is how often the database is asked where the system does not tell of writes (measured: 10 ms costs 3 % of a core).
const pollEvery = 50 * time.Millisecond

// walEvents asks the watch to look every now and then. stop ends it. A notification by kqueue would have to open the file, and
// closing that descriptor would drop SQLite's locks.
func walEvents(string) (events <-chan struct{}, stop func()) {
	ticker := time.NewTicker(pollEvery)
	out, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				select {
				case out <- struct{}{}:
				default:
				}
			case <-done:
				return
			}
		}
	}()
	return out, func() { ticker.Stop(); close(done) }
}
