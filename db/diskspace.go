package db

// spaceEvery is the number of tasks between two looks at the disk in one transaction. A look takes 1 µs.
const spaceEvery = 1000

// diskSpace is the result of the last look at the disk. Transactions that follow each other closely share it.
type diskSpace struct {
	asked int
	err   error
}

// room returns an error of kind ErrFull if the disk has no space for another task. It does not look at the disk each time.
func (t *tx) room() error {
	if t.space.asked%spaceEvery == 0 {
		t.space.err = t.db.engine.Space()
	}
	t.space.asked++
	return t.space.err
}
