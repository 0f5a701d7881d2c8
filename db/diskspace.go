package db

// spaceEvery is the number of tasks between two checks of the disk space in one transaction. A check takes 1 µs.
const spaceEvery = 1000

// diskSpace is the result of the last check of the disk space. A transaction that begins less than lookAgain (1 ms) after a successful
// check uses this result, too.
type diskSpace struct {
	calls int // number of calls of checkSpace; one call in 1000 checks the disk
	err   error
}

// checkSpace returns an error of kind ErrFull if the disk has no space for another task. It checks the disk once in spaceEvery (1000)
// calls, and returns the last result in all other calls.
func (t *tx) checkSpace() error {
	if t.space.calls%spaceEvery == 0 {
		t.space.err = t.db.engine.Space()
	}
	t.space.calls++
	return t.space.err
}
