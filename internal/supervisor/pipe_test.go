//go:build unix

package supervisor

import (
	"bytes"
	"os"
	"testing"
	"time"
)

func TestReadPipeReadsAllDataThatWasWrittenInTime(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close() // this writer keeps the pipe open until the end of the test
	want := bytes.Repeat([]byte("0123456789"), 5000)
	if _, err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	if err := ReadPipe(r, make([]byte, 4096), func(data []byte) { got = append(got, data...) }); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, error %v; want %d bytes", len(got), err, len(want))
	}
}

func TestReadPipeReturnsAlthoughProcessKeepsWriting(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				w.Close()
				return
			}
		}
	}()
	if err := r.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := ReadPipe(r, make([]byte, 4096), func([]byte) {}); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	r.Close() // the writer ends because the read end is closed
}
