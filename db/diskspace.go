package db

import "time"

// checkSpace returns an error of kind ErrFull if the disk has no space for another task. After a check that found enough space it looks
// again only after the time lookAgain (1 ms), because a check takes 1 µs.
func (t *tx) checkSpace() error {
	now := time.Now()
	if last := t.db.roomAt.Load(); last != nil && now.Sub(*last) < lookAgain {
		return nil
	}

	err := t.db.engine.Space()
	if err == nil {
		t.db.roomAt.Store(&now)
	}
	return err
}
