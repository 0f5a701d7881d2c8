package usercode

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// join starts one member for each delay. The member joins after that delay. If
// the delay is negative, the member arrives without joining. The members are
// numbered from 0. For each call, join returns the numbers of its members.
func join(delays ...time.Duration) (sets [][]int) {
	g := NewGroup()
	seats := make([]*Seat, len(delays))
	for i := range delays {
		seats[i] = g.NewSeat()
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, d := range delays {
		all.Go(func() {
			if d < 0 {
				seats[i].Arrive()
				return
			}
			time.Sleep(d)
			if values := Join(WithSeat(context.Background(), seats[i]), i); values != nil {
				mu.Lock()
				defer mu.Unlock()
				sets = append(sets, values)
			}
			seats[i].Arrive() // a second call of Arrive has no effect
		})
	}
	all.Wait()
	return sets
}

func TestMembersMeetInOrderOfTheirSeats(t *testing.T) {
	for name, test := range map[string]struct {
		delays []time.Duration
		want   [][]int
		took   time.Duration
	}{
		"all at once":         {[]time.Duration{0, 0, 0}, [][]int{{0, 1, 2}}, 0},
		"the last seat first": {[]time.Duration{20, 10, 0}, [][]int{{0, 1, 2}}, 20},
		"one does not join":   {[]time.Duration{0, -1, 5}, [][]int{{0, 2}}, 5},
		"nobody joins":        {[]time.Duration{-1, -1}, nil, 0},
		"one is late":         {[]time.Duration{0, 3 * joinWait, 0}, [][]int{{0, 2}, {1}}, 3 * joinWait},
		"two are late":        {[]time.Duration{0, 3 * joinWait, 5 * joinWait / 2}, [][]int{{0}, {1, 2}}, 3 * joinWait},
		"a member for itself": {[]time.Duration{7}, [][]int{{0}}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				got := join(test.delays...)
				if !slices.EqualFunc(got, test.want, slices.Equal) {
					t.Errorf("got %v, want %v", got, test.want)
				}
				if took := time.Since(began); took != test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
			})
		})
	}
}

func TestValueWithoutSeatIsAlone(t *testing.T) {
	if got := Join(context.Background(), "x"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("got %v, want [x]", got)
	}
}
