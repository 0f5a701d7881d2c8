package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/invocation"
)

const (
	lineLongest = 32 << 20 // a task of the largest size as JSON
	partBytes   = 16 << 10 // of a part, if no line is longer
	partsAtOnce = 2        // that are made into tasks; one more is in memory. Lines can be large, and one who adds tasks is slower than two
)

// part is some whole lines of a batch.
type part struct {
	line int // the number of the first one, from 1
	text []byte
	err  error // why the line cannot be read; then there is no text
}

// parts yields what each Read brings, to the last end of a line: so no line waits for the next one of a slow pipe. An error of the reading
// is the last thing that is yielded.
func parts(in io.Reader) iter.Seq[part] {
	return func(yield func(part) bool) {
		line, buf := 1, make([]byte, 0, partBytes)
		for {
			if len(buf) == cap(buf) {
				buf = slices.Grow(buf, len(buf))
			}
			n, err := in.Read(buf[len(buf):cap(buf)])
			end := len(buf) + bytes.LastIndexByte(buf[len(buf):len(buf)+n], '\n') + 1
			switch buf = buf[:len(buf)+n]; {
			case errors.Is(err, io.EOF):
				end = len(buf)
			case end == len(buf)-n: // there is none in what came
				end = 0
			}
			if end > 0 {
				if !yield(part{line: line, text: buf[:end:end]}) {
					return
				}
				line += bytes.Count(buf[:end], []byte("\n"))
				buf = append(make([]byte, 0, max(partBytes, 2*(len(buf)-end))), buf[end:]...)
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(part{line: line, err: invocation.ReasonOf(err)})
				return
			case len(buf) > lineLongest:
				yield(part{line: line, err: fmt.Errorf("is longer than %s", humanize.ExactSize(lineLongest))})
				return
			}
		}
	}
}

// beside yields f of each value, in order. It works some values ahead of the one who uses them. When he has enough it waits neither for f
// nor for seq, which may be reading from a pipe.
func beside[T, R any](seq iter.Seq[T], f func(T) R) iter.Seq[R] {
	return func(yield func(R) bool) {
		results, over := make(chan chan R, partsAtOnce-1), make(chan struct{})
		defer close(over)
		go func() {
			defer close(results)
			for v := range seq {
				result := make(chan R, 1)
				select {
				case results <- result:
					go func() { result <- f(v) }()
				case <-over:
					return
				}
			}
		}()
		for result := range results {
			if !yield(<-result) {
				return
			}
		}
	}
}
