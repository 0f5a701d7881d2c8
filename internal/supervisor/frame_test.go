package supervisor

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	sent := []message{
		&request{Op: opStart, Key: Key{1 << 60, -2}, Path: "\xff", Argv: []string{"a", "", strings.Repeat("b", 1<<20)},
			Env: []string{"A=\n"}, Dir: "/", Null: 1, Deadline: -1},
		&request{Op: opKill, Key: Key{1, 2}, Argv: []string{}, Env: []string{}, Signal: 15, After: 1000},
		&request{Op: opPing, Argv: []string{}, Env: []string{}, N: 1 << 62},
		&reply{Op: opHello, Protocol: protocol, Version: "v1", Pid: 7, Reason: "for no reason"},
		&reply{Op: opRefused, Key: Key{1, 2}, Reason: reasonExec, Errno: 2},
		&reply{Op: opExited, Key: Key{1, 2}, Pid: 3, EndedBy: byKill, Exit: &Exit{Code: -1, Signal: 9, LeftOver: 2,
			Usage:  Usage{1, 2, 3, 4, 5},
			Denied: []MarkedProcess{{PID: 1, Name: "a b", State: "D", UID: 1000}, {PID: 2}}}},
	}
	var stream []byte
	for _, m := range sent {
		text, err := encode(m)
		if err != nil {
			t.Fatal(err)
		}
		stream = append(stream, text...)
	}
	for _, r := range []interface{ Read([]byte) (int, error) }{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream))} {
		var in frameReader
		for _, want := range sent {
			got := reflect.New(reflect.TypeOf(want).Elem()).Interface().(message)
			if err := in.next(r, got); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, error %v; want %+v", got, err, want)
			}
		}
	}
}

func TestInvalidMessagesAreRejected(t *testing.T) {
	whole, err := encode(&request{Op: opStart, Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	body := whole[frameHeader:]
	for _, bad := range [][]byte{nil, body[:len(body)-1], append(bytes.Clone(body), 0), {1}, bytes.Repeat([]byte{0xff}, 20)} {
		if err := decode(bad, &request{}); !errors.Is(err, errFrame) {
			t.Errorf("decode(%x): got error %v, want %v", bad, err, errFrame)
		}
	}
	var in frameReader
	if err := in.next(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff}), &request{}); !errors.Is(err, errFrame) {
		t.Errorf("a frame of 4 GiB: got error %v, want %v", err, errFrame)
	}
	if _, err := encode(&request{Path: strings.Repeat("x", maxFrame)}); err == nil {
		t.Error("a message longer than maxFrame: got no error, want one")
	}
}
