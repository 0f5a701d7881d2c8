package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

const firstBytes = 256 // as many bytes of a script as Linux reads to find its #! line

// scriptError explains why the system can't execute an existing file: its #!
// line names no program, or it has no such line. It returns an empty text for
// other errors. Shells run a file without #! as a script of their own; we
// don't, because the file may be anything.
func scriptError(ctx context.Context, path string, cause error) string {
	missing, format := errors.Is(cause, fs.ErrNotExist), errors.Is(cause, syscall.ENOEXEC)
	if !missing && !format {
		return ""
	}

	head, err := touchFile(ctx, func(ctx context.Context) ([]byte, error) { return readRegular(ctx, path, 0, firstBytes) })
	if err != nil {
		return ""
	}

	line, _, _ := bytes.Cut(head, []byte("\n"))
	words := strings.Fields(strings.TrimPrefix(string(line), "#!"))
	switch script := bytes.HasPrefix(line, []byte("#!")); {
	case missing && script && bytes.HasSuffix(line, []byte("\r")):
		return fmt.Sprintf("its #! line ends with a carriage return, as in Windows files; remove them: sed -i 's/\\r$//' %s", path)
	case missing && script && len(words) > 0:
		return "no program " + words[0] + ", which its #! line names"
	case missing:
		return "the loader or library directory that it was built for is not on this system"
	case script, bytes.HasPrefix(head, []byte("\x7fELF")):
		return ""
	}

	return "it is no program and has no #! line; add one such as #!/bin/sh, or run: sh " + path
}
