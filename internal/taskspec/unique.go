package taskspec

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// uniqueKey returns the unique key of the task that the Spec describes. With the option UniqueArgs it contains a hash of the job and its
// arguments.
func uniqueKey(s *jobs.Spec) string {
	if !s.UniqueArgs {
		return s.UniqueKey
	}
	hash := sha256.New()
	hash.Write([]byte(s.Job))
	hash.Write([]byte{0})
	hash.Write(canonical(s.Args))
	return cmp.Or(s.UniqueKey, s.Job) + ":" + hex.EncodeToString(hash.Sum(nil)[:16])
}

// ResolveUniqueArgs replaces the option UniqueArgs of a Spec by the key that follows from the arguments. If somebody changes the arguments
// later, the key stays the same.
func ResolveUniqueArgs(s *jobs.Spec) {
	s.UniqueKey, s.UniqueArgs = uniqueKey(s), false
}

// canonical returns JSON without white space, with the keys of each object sorted. It does not change the spelling of numbers.
func canonical(text json.RawMessage) []byte {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return text // the text is empty, because the task has no arguments
	}
	sorted, err := usercode.Marshal(value)
	if err != nil {
		return text // an error is impossible, because value comes from JSON
	}
	return sorted
}

// DeletedTask returns the task that Enqueue returns if the unique key of the Spec still belongs to a deleted task. The parameter "id" is
// the id of the deleted task.
func DeletedTask(id int64, s *jobs.Spec, now time.Time) jobs.Task {
	return jobs.Task{ID: id, UniqueKey: NewTask(s, now).UniqueKey, Kept: true}
}
