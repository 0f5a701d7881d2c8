package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Notes are history 2: what each process and command of the play saw and did, in a file of lines that each appends to by one write. A
// process that is killed has said what it had to say.

// The words of notes. task and generation are 0 where there are none.
const (
	opTry    = "try"    // text: a token. Its task is about to be enqueued
	opAck    = "ack"    // task; text: the token it was enqueued for. The answer has come
	opCancel = "cancel" // task: somebody is about to cancel it
	opRetry  = "retry"  // task: somebody is about to run it again
	opBusy   = "busy"   // text: somebody was told that the database is busy
	opOpen   = "open"   // text: the µs that opening the database took

	opStart   = "start"   // task, generation; text: the kind. Its code runs
	opAlive   = "alive"   // task, generation: it still does
	opEnd     = "end"     // task, generation: it ended by itself
	opOverlap = "overlap" // task, generation; text: command or function, and the processes it found alive of another execution of its task
	opProcess = "process" // task, generation; text: when the process that writes this started, and how. It belongs to an attempt

	opKill      = "kill"      // text: a pid that is about to be killed, of a worker
	opStop      = "stop"      // text: the pid of a worker that is about to be stopped, or one of whose guardians is
	opResume    = "resume"    // text: the pid of a worker; what was stopped goes on
	opGuardians = "guardians" // text: the pid of a worker of whose guardians some are about to be killed or stopped
	opLocked    = "locked"    // the nemesis holds the write lock, or has stopped somebody who may
	opDown      = "down"      // the nemesis has killed the server
	opUp        = "up"        // the server answers again
	opUnlocked  = "unlocked"  // it no longer does
)

// note is a line.
type note struct {
	at               int64 // CLOCK_MONOTONIC, µs
	pid              int   // who wrote it
	op               string
	task, generation int64
	text             string
}

type notesFile struct {
	file *os.File
}

// notesRoom is how many bytes are kept for the notes, so that they can be taken while a small disk is full.
const notesReserve = 16 << 20

func openNotes(w workspace) (*notesFile, error) {
	file, err := os.OpenFile(w.notes(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	reserve(file, notesReserve)
	return &notesFile{file: file}, nil
}

// add writes a line. Without notes nothing can be judged: it panics if that fails.
func (n *notesFile) add(op string, task, generation int64, text string) {
	line := fmt.Appendf(nil, "%d %d %s %d %d %s\n", monotonic(), os.Getpid(), op, task, generation, text)
	if _, err := n.file.Write(line); err != nil {
		panic("selftest: " + err.Error())
	}
}

func (n *notesFile) size() int64 {
	info, err := n.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// count returns how many notes of op were written from an offset on.
func (n *notesFile) count(from int64, op string) int {
	text := make([]byte, max(n.size()-from, 0))
	k, _ := n.file.ReadAt(text, from)
	return bytes.Count(text[:k], []byte(" "+op+" "))
}

// readNotes returns all notes in the order in which they were written.
func readNotes(w workspace) ([]note, error) {
	text, err := os.ReadFile(w.notes())
	if err != nil {
		return nil, err
	}
	return parseNotes(string(text))
}

func parseNotes(text string) (list []note, err error) {
	for line := range strings.Lines(text) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6)
		if len(part) != 6 {
			return nil, fmt.Errorf("notes: %q", line)
		}
		var n note
		var errs [4]error
		n.at, errs[0] = strconv.ParseInt(part[0], 10, 64)
		n.pid, errs[1] = strconv.Atoi(part[1])
		n.task, errs[2] = strconv.ParseInt(part[3], 10, 64)
		n.generation, errs[3] = strconv.ParseInt(part[4], 10, 64)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("notes: %q: %w", line, err)
		}
		n.op, n.text = part[2], part[5]
		list = append(list, n)
	}
	return list, nil
}

// since returns the whole notes from an offset on, and the offset behind them.
func (n *notesFile) since(from int64) (list []note, next int64) {
	text := make([]byte, max(n.size()-from, 0))
	k, _ := n.file.ReadAt(text, from)
	text = text[:bytes.LastIndexByte(text[:k], '\n')+1]
	list, _ = parseNotes(string(text)) // what cannot be read is told of at the end
	return list, from + int64(len(text))
}

// born returns when the process of a note started, and the words for how.
func (n note) process() (at int64, traits string, ok bool) {
	if n.op != opProcess {
		return 0, "", false
	}
	start, traits, _ := strings.Cut(n.text, " ")
	at, err := strconv.ParseInt(start, 10, 64)
	return at, traits, err == nil
}
