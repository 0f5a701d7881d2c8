package web

import (
	"maps"
	"slices"
	"time"
)

// SetReadTimeout sets the time limit for the database reads of a page.
func SetReadTimeout(d time.Duration) { readTimeout = d }

// Actions returns the names of all actions.
func Actions() []string { return slices.Sorted(maps.Keys(actions)) }
