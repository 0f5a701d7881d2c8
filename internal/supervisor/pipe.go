package supervisor

import (
	"errors"
	"io"
	"os"
)

// maxPipe is how many bytes a pipe can hold. After the read deadline, ReadPipe
// reads at most this many: any more were certainly written later.
const maxPipe = 1 << 20

// ReadPipe passes the data from a pipe to handle, which must not keep its
// argument. It returns nil when every writer has closed the pipe, or when r's
// read deadline has passed. The caller sets the deadline when the process that
// it waits for has ended, because other processes may keep the pipe open. After
// it, ReadPipe still reads what is in the pipe, because the process wrote that
// before.
func ReadPipe(r *os.File, buffer []byte, handle func([]byte)) error {
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			handle(buffer[:n])
		}

		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return readRest(r, buffer, handle)
		default:
			return err
		}
	}
}
