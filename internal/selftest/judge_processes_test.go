package selftest

import (
	"fmt"
	"strings"
	"testing"
)

// firstAttempt is a history in which worker w1 has claimed task 1, and worker w2 is there to take it over.
func firstAttempt(k kind) *story {
	s := newStory()
	s.join("w1", 11)
	s.join("w2", 12)
	s.enqueue(1, k)
	s.claim(1, "w1")
	return s
}

// takenOver goes on until task 1, whose worker hangs, was revoked, lost, and run by w2.
func takenOver(s *story) *story {
	s.wait(storyLease)
	s.revoke(1)
	s.wait(20)
	s.endRevoked(1, lost)
	s.claim(1, "w2")
	s.complete(1)
	return s
}

func (s *story) attemptProcess(pid int, task, generation int64, how string) attemptProcess {
	s.note(pid, opProcess, task, generation, "77 "+how)
	return attemptProcess{pid, 77, task, generation, how}
}

func (s *story) seenAliveFor(m attemptProcess, ms int64) { s.lastSeen[m] = (s.now + ms) * 1000 }

func TestWhatRunnerKillsMustBeDeadInTimeAndCountAsALoss(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		tell func() *story
	}{
		"a claim is revoked, and its worker dies": {"", func() *story {
			s := firstAttempt(quick)
			s.wait(storyLease)
			s.revoke(1)
			s.note(0, opKill, 0, 0, "11")
			s.wait(300)
			s.endRevoked(1, lost)
			s.add(event{op: "leave", worker: "w1"})
			s.claim(1, "w2")
			s.complete(1)
			return s
		}},
		"a worker goes on and claims a suspect before the loss of what was taken from it is recorded": {"", func() *story {
			s := firstAttempt(quick)
			s.enqueue(2, poison)
			for range poisonLosses {
				s.claim(2, "w2")
				s.wait(storyLease)
				s.end(2, lost)
			}
			s.revoke(1)
			s.claim(2, "w1")
			s.endRevoked(1, lost)
			s.claim(1, "w2")
			s.complete(1)
			s.wait(storyLease)
			s.end(2, func(e *event) { lost(e); e.state = "failed" })
			return s
		}},
		"an attempt fails by a kill of runner's": {"I14", func() *story {
			s := newStory()
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
		"a leftover dies in time": {"", func() *story {
			s := firstAttempt(quick)
			m := s.attemptProcess(21, 1, 2, ownSession+","+noEnvironment)
			s.complete(1)
			s.seenAliveFor(m, 900)
			return s
		}},
		"a leftover outlives its attempt": {"I10", func() *story {
			s := firstAttempt(quick)
			m := s.attemptProcess(21, 1, 2, ownSession+","+noEnvironment)
			s.complete(1)
			s.seenAliveFor(m, 1100)
			return s
		}},
		"a leftover of an attempt that was taken over lives on": {"I10", func() *story {
			s := firstAttempt(quick)
			m := s.attemptProcess(21, 1, 2, changesUser)
			takenOver(s).seenAliveFor(m, 1100)
			return s
		}},
		"a leftover outlives its attempt while everything is frozen": {"", func() *story {
			s := firstAttempt(quick)
			m := s.attemptProcess(21, 1, 2, ownSession+","+noEnvironment)
			s.complete(1)
			s.note(0, opLocked, 0, 0, "")
			s.wait(2000)
			s.note(0, opUnlocked, 0, 0, "")
			s.seenAliveFor(m, 0)
			return s
		}},
		"a leftover is alive beside the next attempt": {"I9", func() *story {
			s := takenOver(firstAttempt(quick))
			s.note(22, opOverlap, 1, 5, "command 21/77")
			return s
		}},
		"a worker ends because its guardians were killed": {"", func() *story {
			s := takenOver(firstAttempt(quick))
			s.note(0, opGuardians, 0, 0, "11")
			s.lifetimes[0].failure, s.lifetimes[0].noGuardians = "worker1 ended by itself", true
			return s
		}},
		"a worker ends because its guardians do": {"I10", func() *story {
			s := takenOver(firstAttempt(quick))
			s.note(0, opGuardians, 0, 0, "12")
			s.lifetimes[0].failure, s.lifetimes[0].noGuardians = "worker1 ended by itself", true
			return s
		}},
		"a command outlives its lease while everything is frozen": {"", func() *story {
			s := firstAttempt(long)
			s.note(0, opLocked, 0, 0, "")
			s.wait(2 * storyLease)
			s.note(2, opAlive, 1, 2, "")
			s.note(0, opUnlocked, 0, 0, "")
			s.end(1, lost)
			s.claim(1, "w2")
			s.complete(1)
			return s
		}},
	} {
		if r := c.tell().judge(); strings.Join(r.Broken(), " ") != c.want {
			t.Errorf("%s: broke %v, want %q: %v", name, r.Broken(), c.want, r.Violations)
		}
	}
}

func TestRecoveryIsMeasuredWhateverHappenedToTheGuardian(t *testing.T) {
	s := firstAttempt(quick)
	s.wait(100)
	s.note(0, opGuardians, 0, 0, "11")
	s.note(0, opKill, 0, 0, "11")
	s.wait(200)
	s.note(0, opLocked, 0, 0, "")
	s.wait(400)
	s.note(0, opUnlocked, 0, 0, "")
	s.wait(100)
	s.end(1, lost)
	s.add(event{op: "leave", worker: "w1"})
	s.claim(1, "w2")
	s.complete(1)
	if r := s.judge(); len(r.Violations) > 0 || r.Figures.Recoveries != 1 || r.Figures.RecoveryP99 != 0.3 {
		t.Errorf("got %d recoveries, p99 %v, violations %v; want 1 of 0.3, none", r.Figures.Recoveries, r.Figures.RecoveryP99, r.Violations)
	}
}

// Only the ends of commands that left nothing behind count, and only while leftovers of others live.
func TestTheDelayOfEndsIsMeasuredBesideLeftoversOfOthers(t *testing.T) {
	s := firstAttempt(quick)
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
	s.wait(2000) // m is gone
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

func TestALongHistoryIsReplayedToItsEnd(t *testing.T) {
	s := newStory()
	s.join("w1", 11)
	const n = lookahead
	for id := range int64(n) {
		s.enqueue(id+1, quick)
		s.claim(id+1, "w1")
		s.complete(id + 1)
	}
	if r := s.judge(); len(r.Violations) > 0 || r.Claims != n {
		t.Errorf("got %d claims, violations %v; want %d, none", r.Claims, r.Violations, n)
	}
	s.add(event{op: "attempt", id: n, generation: 2, worker: "w1"})
	if r := s.judge(); len(r.Violations) != 1 || r.Violations[0].Invariant != "I2" {
		t.Errorf("got %v, want one violation of I2: an end is accepted twice", r.Violations)
	}
}
