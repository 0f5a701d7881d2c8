package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Besides the history that the triggers of the database write, a run has a second history: the notes. Each process of the run notes what it
// observes and does. It appends each line to one file with a single write, so a process that is killed loses no line that it wrote.

// These are the operations of notes. The comment of an operation first lists the fields that its notes set, and then says when a process
// writes the note. The fields task and generation are 0 in all other notes.
const (
	opTry    = "try"    // text: label; a client is about to enqueue the task
	opAck    = "ack"    // task, text: label; the client has received the id of its task
	opCancel = "cancel" // task; a client is about to cancel the task
	opRetry  = "retry"  // task; a client is about to retry the task
	opBusy   = "busy"   // text: page, command or error; the product reported that the database is busy
	opOpen   = "open"   // text: the time that the process needed to open the database, in µs

	opStart = "start" // task, generation, text: kind; the code of the task starts
	opAlive = "alive" // task, generation; the code is still running
	opEnd   = "end"   // task, generation; the code has finished by itself
	// task, generation, text: command or function, then the living processes of an earlier execution; two executions of the task overlap
	opOverlap = "overlap"
	opProcess = "process" // task, generation, text: start time and traits; the process that writes the note belongs to this attempt

	opKill      = "kill"      // text: pid of a worker that the writer is about to kill
	opStop      = "stop"      // text: pid of a worker; the nemesis is about to stop the worker or guardians of it
	opResume    = "resume"    // text: pid of a worker; the nemesis has resumed the processes that it had stopped
	opGuardians = "guardians" // text: pid of a worker; the writer is about to kill or stop guardians of it
	opLocked    = "locked"    // the nemesis holds the write lock, or has stopped a process that may hold it
	opDown      = "down"      // the nemesis is about to kill the server
	opUp        = "up"        // the server accepts connections again
	opUnlocked  = "unlocked"  // the fault of an earlier opLocked note has ended
)

// note is a line of the notes.
type note struct {
	at               int64 // monotonic clock, in µs
	pid              int   // pid of the writer
	op               string
	task, generation int64
	text             string
}

type notesFile struct {
	file *os.File
}

// notesReserve is the disk space reserved for the notes, so that processes can write them while a small disk is
// full.
const notesReserve = 16 << 20

func openNotes(w workspace) (*notesFile, error) {
	file, err := os.OpenFile(w.notes(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	reserve(file, notesReserve)
	return &notesFile{file: file}, nil
}

// add appends a note. It panics if the write fails, because without the note the run cannot be judged.
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

// count returns the number of notes with an operation, from an offset on.
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

// The method "since" returns the complete notes from an offset on, and the offset after them.
func (n *notesFile) since(from int64) (list []note, next int64) {
	text := make([]byte, max(n.size()-from, 0))
	k, _ := n.file.ReadAt(text, from)
	text = text[:bytes.LastIndexByte(text[:k], '\n')+1]
	list, _ = parseNotes(string(text)) // readNotes will report the malformed lines at the end of the run
	return list, from + int64(len(text))
}

// process returns the start time and the traits of the process that wrote an opProcess note.
func (n note) process() (at int64, traits string, ok bool) {
	if n.op != opProcess {
		return 0, "", false
	}
	start, traits, _ := strings.Cut(n.text, " ")
	at, err := strconv.ParseInt(start, 10, 64)
	return at, traits, err == nil
}
