package web

import (
	"maps"
	"sync"
	"time"
)

// cache keeps values that take long to read, because many open pages show the
// same ones.
type cache[V any] struct {
	mu   sync.Mutex
	kept *kept[V] // nil after clear
}

type kept[V any] struct {
	mu     sync.Mutex // held during a read
	values map[string]cachedValue[V]
}

type cachedValue[V any] struct {
	value V
	until time.Time
}

// get returns the value of a key. It calls read if there is none, or if the
// time for which read said that the value is fresh is over. While one request
// reads a value, others wait for it.
func (c *cache[V]) get(key string, read func() (V, time.Duration, error)) (V, error) {
	k := c.current()
	k.mu.Lock()
	defer k.mu.Unlock()

	if last, ok := k.values[key]; ok && time.Now().Before(last.until) {
		return last.value, nil
	}

	value, fresh, err := read()
	if err != nil || fresh == 0 {
		return value, err
	}

	maps.DeleteFunc(k.values, func(_ string, old cachedValue[V]) bool { return !time.Now().Before(old.until) })
	k.values[key] = cachedValue[V]{value, time.Now().Add(fresh)}
	return value, nil
}

func (c *cache[V]) current() *kept[V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = &kept[V]{values: map[string]cachedValue[V]{}}
	}
	return c.kept
}

// clear forgets all values, and those that requests read now. It doesn't wait
// for their reads.
func (c *cache[V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = nil
}
