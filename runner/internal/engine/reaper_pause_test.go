package engine

import (
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/testkit"
)

func TestAReaperChecksMoreRarelyIfItsReadsTakeLong(t *testing.T) {
	p := newReaper(&Engine{})
	testkit.Equal(t, "pause after fast reads", p.pause(), reapEvery)
	p.cost = 100 * time.Millisecond
	testkit.Equal(t, "pause after slow reads", p.pause(), 5*time.Second)
	p.seen = map[db.Lease]time.Duration{{Length: 12_000}: 0}
	testkit.Equal(t, "pause with a lease of 12 s", p.pause(), 2*time.Second)
}
