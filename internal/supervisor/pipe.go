package supervisor

import (
	"errors"
	"io"
	"os"
)

// maxPipe is the largest number of bytes that a pipe can hold. After the read deadline, ReadPipe reads at most this many bytes: further
// bytes were certainly written after the deadline.
const maxPipe = 1 << 20

// ReadPipe passes the data from a pipe to the function "take". It returns nil when every writer has closed the pipe, or when
// the read deadline of r has passed. The caller sets the deadline when the process that it waits for has ended, because
// other processes may keep the pipe open. After the deadline, ReadPipe still reads the data that is in the pipe, because
// the process wrote it before the deadline. The function "take" must not keep its argument.
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
