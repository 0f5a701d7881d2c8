package harness

import (
	"fmt"
	"testing"
)

// claimedHistory returns a history in which worker w1 has claimed task 1 and
// worker w2 has joined.
func claimedHistory(k kind) *historyBuilder {
	s := newHistory()
	s.join("w1", 11)
	s.join("w2", 12)
	s.enqueue(1, k)
	s.claim(1, "w1")
	return s
}

// takeOver adds the events after a hang of worker w1. The claim of task 1 is
// revoked and recorded as lost, and worker w2 runs the task.
func takeOver(s *historyBuilder) *historyBuilder {
	s.wait(testLease)
	s.revoke(1)
	s.wait(20)
	s.endRevoked(1, lostByReaper)
	s.claim(1, "w2")
	s.complete(1)
	return s
}

func (s *historyBuilder) attemptProcess(pid int, task, generation int64, how string) attemptProcess {
	s.note(pid, opProcess, task, generation, "77 "+how)
	return attemptProcess{pid, 77, task, generation, how}
}

func (s *historyBuilder) seenAliveFor(m attemptProcess, ms int64) {
	s.lastSeen[m] = (s.now + ms) * 1000
}

// TestKillsByRunner checks the rules for processes that runner kills: the
// processes die in time, and their attempts count as losses.
func TestKillsByRunner(t *testing.T) {
	checkHistories(t, killHistories)
	checkHistories(t, leftoverHistories)
}

// killHistories are histories of workers, guardians and attempts that are
// killed.
var killHistories = map[string]historyCase{
	"the worker of a revoked claim dies": {"", func() *historyBuilder {
		s := claimedHistory(quick)
		s.wait(testLease)
		s.revoke(1)
		s.note(0, opKill, 0, 0, "11")
		s.wait(300)
		s.endRevoked(1, lostByReaper)
		s.add(event{op: "leave", worker: "w1"})
		s.claim(1, "w2")
		s.complete(1)
		return s
	}},
	"a resumed worker claims a suspect before its revoked claim is recorded as lost": {"", func() *historyBuilder {
		s := claimedHistory(quick)
		s.enqueue(2, poison)
		for range poisonLosses {
			s.claim(2, "w2")
			s.wait(testLease)
			s.end(2, lostByReaper)
		}
		s.revoke(1)
		s.claim(2, "w1")
		s.endRevoked(1, lostByReaper)
		s.claim(1, "w2")
		s.complete(1)
		s.wait(testLease)
		s.end(2, func(e *event) { lostByReaper(e); e.state = "failed" })
		return s
	}},
	"an attempt fails because runner killed it": {"I14", func() *historyBuilder {
		s := newHistory()
		s.join("w1", 11)
		s.enqueue(1, failing)
		for i, reason := range []string{"exit", "signal", "exit"} {
			s.claim(1, "w1")
			s.events[len(s.events)-1].maxAttempts = failingAttempts
			s.end(1, func(e *event) {
				e.state, e.reason, e.err = "retrying", reason, "killed by signal 9"
				if i == 2 {
					e.state = "failed"
				}
			})
			if i < 2 {
				s.update(1, func(e *event) { e.state = "pending" })
			}
		}
		return s
	}},
	"a worker exits because its guardians were killed": {"", func() *historyBuilder {
		s := takeOver(claimedHistory(quick))
		s.note(0, opGuardians, 0, 0, "11")
		s.lifetimes[0].failure, s.lifetimes[0].noGuardians = "worker1 exited by itself", true
		return s
	}},
	"a worker exits because its guardians exit by themselves": {"I10", func() *historyBuilder {
		s := takeOver(claimedHistory(quick))
		s.note(0, opGuardians, 0, 0, "12")
		s.lifetimes[0].failure, s.lifetimes[0].noGuardians = "worker1 exited by itself", true
		return s
	}},
	"a command outlives its lease while everything is frozen": {"", func() *historyBuilder {
		s := claimedHistory(long)
		s.note(0, opLocked, 0, 0, "")
		s.wait(2 * testLease)
		s.note(2, opAlive, 1, 2, "")
		s.note(0, opUnlocked, 0, 0, "")
		s.end(1, lostByReaper)
		s.claim(1, "w2")
		s.complete(1)
		return s
	}},
}

// leftoverHistories are histories of processes that a command leaves behind.
var leftoverHistories = map[string]historyCase{
	"a leftover dies in time": {"", func() *historyBuilder {
		s := claimedHistory(quick)
		m := s.attemptProcess(21, 1, 2, ownSession+","+noEnvironment)
		s.complete(1)
		s.seenAliveFor(m, 900)
		return s
	}},
	"a leftover outlives its attempt": {"I10", func() *historyBuilder {
		s := claimedHistory(quick)
		m := s.attemptProcess(21, 1, 2, ownSession+","+noEnvironment)
		s.complete(1)
		s.seenAliveFor(m, 1100)
		return s
	}},
	"a leftover of an attempt that was taken over lives on": {"I10", func() *historyBuilder {
		s := claimedHistory(quick)
		m := s.attemptProcess(21, 1, 2, changesUser)
		takeOver(s).seenAliveFor(m, 1100)
		return s
	}},
	"a leftover outlives its attempt while everything is frozen": {"", func() *historyBuilder {
		s := claimedHistory(quick)
		m := s.attemptProcess(21, 1, 2, ownSession+","+noEnvironment)
		s.complete(1)
		s.note(0, opLocked, 0, 0, "")
		s.wait(2000)
		s.note(0, opUnlocked, 0, 0, "")
		s.seenAliveFor(m, 0)
		return s
	}},
	"a leftover is alive during the next attempt": {"I9", func() *historyBuilder {
		s := takeOver(claimedHistory(quick))
		s.note(22, opOverlap, 1, 5, "command 21/77")
		return s
	}},
}

// TestRecoveryIsMeasuredAfterKillOfGuardian checks the figures for the recovery
// of the tasks of a killed worker. They must include a worker whose guardian
// was killed just before.
func TestRecoveryIsMeasuredAfterKillOfGuardian(t *testing.T) {
	s := claimedHistory(quick)
	s.wait(100)
	s.note(0, opGuardians, 0, 0, "11")
	s.note(0, opKill, 0, 0, "11")
	s.wait(200)
	s.note(0, opLocked, 0, 0, "")
	s.wait(400)
	s.note(0, opUnlocked, 0, 0, "")
	s.wait(100)
	s.end(1, lostByReaper)
	s.add(event{op: "leave", worker: "w1"})
	s.claim(1, "w2")
	s.complete(1)
	r := s.judge()
	checkViolations(t, r)
	if f := r.Figures; f.Recoveries != 1 || f.RecoveryP99 != 0.3 {
		t.Errorf("got %d recoveries, p99 %v s; want 1 and 0.3 s", f.Recoveries, f.RecoveryP99)
	}
}

// TestFinishDelayIsMeasuredWhileOtherTasksHaveLeftovers checks which commands
// count for the figure end_delay: only commands without leftovers that end
// while leftovers of other tasks are alive.
func TestFinishDelayIsMeasuredWhileOtherTasksHaveLeftovers(t *testing.T) {
	s := claimedHistory(quick)
	m := s.attemptProcess(21, 2, 2, noEnvironment)
	s.attemptProcess(22, 2, 2, changesUser)
	s.attemptProcess(23, 2, 2, leader)
	s.seenAliveFor(m, 1000)
	s.wait(100)
	s.note(30, opEnd, 1, 2, "")
	s.note(0, opStop, 0, 0, "11")
	s.wait(100)
	s.note(0, opResume, 0, 0, "11")
	s.wait(300)
	s.complete(1)
	s.enqueue(2, leavesHidden)
	s.claim(2, "w2")
	s.complete(2)
	// The process m, the last leftover of task 2, dies during this wait. Task 3
	// ends later, so it does not count for end_delay.
	s.wait(2000)
	s.enqueue(3, quick)
	s.claim(3, "w1")
	s.note(31, opEnd, 3, 2, "")
	s.wait(500)
	s.complete(3)
	r := s.judge()
	f := r.Figures
	got := fmt.Sprint(f.Delays, f.DelayP99, f.DelayMax, f.Leftovers, f.Unreadable, r.Violations)
	if want := "1 0.3 0.3 2 1 []"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLongHistoryIsReplayedToItsEnd replays a history that is longer than the
// lookahead of the replay.
func TestLongHistoryIsReplayedToItsEnd(t *testing.T) {
	s := newHistory()
	s.join("w1", 11)
	const n = lookahead
	for id := range int64(n) {
		s.enqueue(id+1, quick)
		s.claim(id+1, "w1")
		s.complete(id + 1)
	}
	r := s.judge()
	checkViolations(t, r)
	if r.Claims != n {
		t.Errorf("got %d claims, want %d", r.Claims, n)
	}
	s.add(event{op: "attempt", id: n, generation: 2, worker: "w1"})
	checkViolations(t, s.judge(), "I2") // the history now says that runner accepted the end of one claim twice
}
