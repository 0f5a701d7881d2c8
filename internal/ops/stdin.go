package ops

import (
	"io"
	"os"
)

// Stdin returns stdin if it is a pipe, a socket or a regular file. It returns
// nil if there's nothing for a command to read: for a terminal, for /dev/null,
// and for a pipe that has already ended (cron starts each job with one).
func Stdin(stdin io.Reader) *os.File {
	file, ok := stdin.(*os.File)
	if !ok {
		return nil
	}

	info, err := file.Stat()
	if err != nil { // stdin is closed
		return nil
	}

	switch mode := info.Mode(); {
	case mode.IsRegular():
		return file
	case mode&(os.ModeNamedPipe|os.ModeSocket) != 0 && !hungUp(file):
		return file
	}

	return nil
}
