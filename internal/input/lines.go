package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"example.com/runner/internal/humanize"
)

// longestLine is the maximum length of a line in bytes; the JSON of the largest
// task isn't longer.
const longestLine = 32 << 20

// line is a line of a file, without its end.
type line struct {
	n    int    // from 1
	text []byte // valid until the next line is read
	err  error  // why there is no such line; no other line follows
}

// lines yields the lines of a file that trim doesn't make empty, each as soon
// as its end is read. A line that the reader's error cuts off is left out.
func lines(in io.Reader, end byte, trim func([]byte) []byte) iter.Seq[line] {
	return func(yield func(line) bool) {
		r := bufio.NewReaderSize(in, 64<<10)
		for n := 1; ; n++ {
			text, err := readLine(r, end)
			switch {
			case errors.Is(err, io.EOF) && len(text) == 0:
				return
			case err != nil && !errors.Is(err, io.EOF):
				yield(line{n: n, err: humanize.Reason(err)})
				return
			}

			text = trim(bytes.TrimSuffix(text, []byte{end}))
			if len(text) > 0 && !yield(line{n: n, text: text}) {
				return
			}
		}
	}
}

func readLine(r *bufio.Reader, end byte) ([]byte, error) {
	text, err := r.ReadSlice(end)
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}

	long := slices.Clone(text)
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = r.ReadSlice(end)
		if long = append(long, text...); len(long) > longestLine {
			return nil, fmt.Errorf("is longer than %s", humanize.ExactSize(longestLine))
		}
	}

	return long, err
}

// jsonLines yields the lines of a JSON Lines file, without spaces around them
// and without the byte order mark that programs on Windows write.
func jsonLines(in io.Reader) iter.Seq[line] {
	return lines(in, '\n', func(text []byte) []byte {
		return bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	})
}
