package supervisor

import (
	"errors"
	"io"
	"os"
)

// maxPipe is what a pipe can hold: more comes only from somebody who still writes.
const maxPipe = 1 << 20

// ReadPipe hands what comes out of a pipe to take, until nobody holds its other end any more, or its read deadline is over. That is set
// when what was waited for has ended, for the sake of those who outlive it and hold the pipe. Then what is in the pipe is still read, for
// it was written in time, and only this process may be late. The error is none of those two ends. take must not keep what it is given.
func ReadPipe(r *os.File, buffer []byte, take func([]byte)) error {
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			take(buffer[:n])
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return readRest(r, buffer, take)
		default:
			return err
		}
	}
}
