package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Besides the history that the database's triggers write, a run has a second
// one: the notes. Each process notes what it observes and does. It appends each
// line to one file with a single write, so a killed process loses no line that
// it wrote.

// These are the operations of notes: who writes them when, and which fields
// have a meaning.
const (
	opTry    = "try"    // written before a client enqueues a task; the field text holds the label of the task
	opAck    = "ack"    // written when a client has received the id of its task; fields: task, and text with the label of the task
	opCancel = "cancel" // written before a client cancels a task; field: task
	opRetry  = "retry"  // written before a client retries a task; field: task
	opBusy   = "busy"   // written when runner reports that the database is busy; the field text holds the page, command or error
	opOpen   = "open"   // written when a process has opened the database; the field text holds the time that this took, in µs

	opStart = "start" // written when the code of a task starts; fields: task, generation, and text with the kind of the task
	opAlive = "alive" // written while the code of a task runs; fields: task, generation
	opEnd   = "end"   // written when the code of a task has finished by itself; fields: task, generation
	// An execution of a task writes opOverlap if an earlier execution of the
	// task hasn't ended. Fields: task, generation, and text. The text says
	// whether the new execution is a command or a function, and lists the
	// living processes of the earlier execution.
	opOverlap = "overlap"
	// A process of an attempt writes opProcess about itself. Fields: task,
	// generation, and text with its start time and its traits.
	opProcess = "process"

	opKill      = "kill"      // written before a process kills a worker; the field text holds the pid of the worker
	opStop      = "stop"      // written before the nemesis stops a worker or its guardians; the field text holds the pid of the worker
	opResume    = "resume"    // written when the nemesis has resumed a worker or its guardians; the field text holds the pid of the worker
	opGuardians = "guardians" // written before a process kills or stops guardians; the field text holds the pid of their worker
	opLocked    = "locked"    // written when a fault begins that can block all writers
	opDown      = "down"      // written before the nemesis kills the server
	opUp        = "up"        // written when the server accepts connections again
	opUnlocked  = "unlocked"  // written when the fault of an earlier opLocked note has ended
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

// notesReserve is the disk space reserved for the notes, so that processes can
// write them while a small disk is full.
const notesReserve = 16 << 20

func openNotes(w workspace) (*notesFile, error) {
	file, err := os.OpenFile(w.notes(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	reserve(file, notesReserve)
	return &notesFile{file: file}, nil
}

// add appends a note. It panics if the write fails, because without the note
// the run can't be judged.
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

// count returns the number of notes of one operation, from an offset in the
// file to its end.
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

// readFrom returns the complete notes from an offset on, and the offset after
// them.
func (n *notesFile) readFrom(from int64) (list []note, next int64) {
	text := make([]byte, max(n.size()-from, 0))
	k, _ := n.file.ReadAt(text, from)
	text = text[:bytes.LastIndexByte(text[:k], '\n')+1]
	list, _ = parseNotes(string(text)) // readNotes will report the malformed lines at the end of the run
	return list, from + int64(len(text))
}

// process returns the start time and the traits of the process that wrote an
// opProcess note.
func (n note) process() (at int64, traits string, ok bool) {
	if n.op != opProcess {
		return 0, "", false
	}
	start, traits, _ := strings.Cut(n.text, " ")
	at, err := strconv.ParseInt(start, 10, 64)
	return at, traits, err == nil
}
