package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"example.com/runner/internal/humanize"
)

const (
	lineLongest = 32 << 20 // maximum bytes of a line; the JSON of the largest task is not longer
	partBytes   = 16 << 10 // bytes of a part; a part with a long line is longer
	partsAtOnce = 2        // number of parts that are parsed at once; two are enough, because adding tasks takes longer than parsing
)

// part is a piece of a batch that consists of whole lines.
type part struct {
	line int // number of the first line, from 1
	text []byte
	err  error // error of the reader; if it is set, the field "text" is empty
}

// parts reads from in and yields whole lines. It yields them after each Read, so a complete line from a slow pipe does not wait for the
// next line. If the reader fails, the last element contains the error.
func parts(in io.Reader, lineEnd byte) iter.Seq[part] {
	return func(yield func(part) bool) {
		line, buf := 1, make([]byte, 0, partBytes)
		for {
			if len(buf) == cap(buf) {
				buf = slices.Grow(buf, len(buf))
			}
			n, err := in.Read(buf[len(buf):cap(buf)])
			end := len(buf) + bytes.LastIndexByte(buf[len(buf):len(buf)+n], lineEnd) + 1
			switch buf = buf[:len(buf)+n]; {
			case errors.Is(err, io.EOF):
				end = len(buf)
			case end == len(buf)-n: // no line ends in the new data
				end = 0
			}
			if end > 0 {
				if !yield(part{line: line, text: buf[:end:end]}) {
					return
				}
				line += bytes.Count(buf[:end], []byte{lineEnd})
				buf = append(make([]byte, 0, max(partBytes, 2*(len(buf)-end))), buf[end:]...)
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(part{line: line, err: humanize.Reason(err)})
				return
			case len(buf) > lineLongest:
				yield(part{line: line, err: fmt.Errorf("is longer than %s", humanize.ExactSize(lineLongest))})
				return
			}
		}
	}
}

// mapAhead calls f for each value of seq, and yields the results in the order of the values. It calls f in other goroutines, before the
// consumer needs the results. When the consumer stops, mapAhead returns at once. It does not wait for running calls of f, and not for seq,
// which may be reading from a pipe.
func mapAhead[T, R any](seq iter.Seq[T], f func(T) R) iter.Seq[R] {
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
