package web

import (
	"maps"
	"sync"
	"time"
)

// cache keeps values that take long to read, because many open pages show the
// same ones.
type cache[V any] struct {
	mu     sync.Mutex
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
	c.mu.Lock()
	defer c.mu.Unlock()

	if last, ok := c.values[key]; ok && time.Now().Before(last.until) {
		return last.value, nil
	}

	value, fresh, err := read()
	if err != nil {
		return value, err
	}
	if c.values == nil {
		c.values = map[string]cachedValue[V]{}
	}

	maps.DeleteFunc(c.values, func(_ string, old cachedValue[V]) bool { return !time.Now().Before(old.until) })
	c.values[key] = cachedValue[V]{value, time.Now().Add(fresh)}
	return value, nil
}

// clear forgets all values.
func (c *cache[V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.values)
}
