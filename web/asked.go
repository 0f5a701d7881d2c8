package web

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"example.com/runner/internal/humanize"
)

// A question about all tasks of a query or of a group names a set of tasks. The confirmation acts on tasks of this set only. Meanwhile
// tasks may leave the set, because workers continue to run. If the query or the group has a task that is not in the set, the page asks
// again.

// askedSets keeps, for each of the most recent questions, the set of tasks that the question named. If the server no longer knows the set
// of a question, for example after a restart, it accepts the confirmation only if the query still selects exactly the same tasks.
type askedSets struct {
	mu   sync.Mutex
	sets []askedSet // sets of the most recent questions, the oldest first
}

type askedSet struct {
	key string
	ids []int64 // ids of the tasks in ascending order
}

const (
	maxAskedSets = 100
	maxAskedIDs  = 1_000_000 // maximum number of ids in all sets together
)

// setKey returns a text that identifies a set of tasks. The ids must ascend.
func setKey(ids []int64) string {
	data := make([]byte, 0, 8*len(ids))
	for _, id := range ids {
		data = binary.BigEndian.AppendUint64(data, uint64(id)) //nolint:gosec // ids are positive
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:15])
}

// add keeps a set and returns its key. It drops the oldest sets if it keeps too many.
func (s *askedSets) add(ids []int64) string {
	ids = slices.Sorted(slices.Values(ids))
	key := setKey(ids)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = slices.DeleteFunc(s.sets, func(set askedSet) bool { return set.key == key })
	s.sets = append(s.sets, askedSet{key, ids})
	total := 0
	for _, set := range s.sets {
		total += len(set.ids)
	}
	for len(s.sets) > maxAskedSets || total > maxAskedIDs && len(s.sets) > 0 {
		total -= len(s.sets[0].ids)
		s.sets = slices.Delete(s.sets, 0, 1)
	}
	return key
}

// newTasks counts the ids that are not in the set with the given key. If the server does not have the set, for example after a restart,
// newTasks computes the key of the ids. If the two keys are equal, no id is new. If they differ, newTasks cannot tell which ids are new: it
// counts all ids, and the result "known" is false.
func (s *askedSets) newTasks(key string, ids []int64) (n int, known bool) {
	s.mu.Lock()
	i := slices.IndexFunc(s.sets, func(set askedSet) bool { return set.key == key })
	var asked []int64
	if i >= 0 {
		asked = s.sets[i].ids // the ids of a set never change, so reading them needs no lock
	}
	s.mu.Unlock()
	if i < 0 {
		if setKey(slices.Sorted(slices.Values(ids))) == key {
			return 0, true
		}
		return len(ids), false
	}
	for _, id := range ids {
		if _, found := slices.BinarySearch(asked, id); !found {
			n++
		}
	}
	return n, true
}

// changedText says why the page asks for confirmation again: there are new tasks, which the earlier question did not include. It returns
// an empty text if the earlier question included all tasks with these ids.
func (a *actionRequest) changedText(ids []int64) string {
	n, known := a.h.asked.newTasks(a.form.Get("set"), ids)
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("Nothing was changed: %s matched when you were asked, and now it is %s", humanize.Plural(a.count, "task"),
		humanize.Count(int64(len(ids))))
	switch {
	case len(ids) == a.count+n: // the difference of the two numbers in the text is the number of new tasks, so the text is complete
	case known:
		text += fmt.Sprintf(", of which %s new", humanize.Does(n, "task", "is", "are"))
	case len(ids) == a.count:
		text += " other tasks"
	}
	return text + "."
}
