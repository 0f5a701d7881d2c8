package postgres

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"

	"example.com/runner/jobs"
)

// ServerIndex returns the index, from 0 to servers-1, of the server for a task, if the tasks are spread over several servers. The index
// depends only on the lane of the task or, if the task has no lane, on its queue. So all tasks of a lane are on one server. All programs
// that use the same servers must list them in the same order:
//
//	runners := []*runner.Runner{first, second, third}
//	spec := SendEmail.With(email, jobs.Lane(account))
//	task, err := runners[postgres.ServerIndex(spec, len(runners))].Enqueue(ctx, spec)
//
// If a server is added at the end of a list of n servers, one in n+1 of the lanes and queues moves to the new server, and all others stay
// where they are.
//
// For each server, numbered from 1, ServerIndex computes the SHA-256 hash of "NUMBER lane:KEY" or "NUMBER queue:NAME". The server with the
// greatest hash gets the task. This is rendezvous hashing (Thaler and Ravishankar, 1998). ServerIndex panics if servers is below 1.
func ServerIndex(spec jobs.Spec, servers int) int {
	if servers < 1 {
		panic(fmt.Sprintf("postgres.ServerIndex: %d servers; there must be at least one", servers))
	}
	key := jobs.Target{Kind: jobs.QueueTarget, Name: cmp.Or(spec.Queue, jobs.DefaultQueue)}
	if spec.Lane != "" {
		key = jobs.Target{Kind: jobs.LaneTarget, Name: spec.Lane}
	}
	var greatest [sha256.Size]byte
	index := 0
	for i := range servers {
		if hash := sha256.Sum256(fmt.Appendf(nil, "%d %s", i+1, key)); bytes.Compare(hash[:], greatest[:]) > 0 {
			index, greatest = i, hash
		}
	}
	return index
}
