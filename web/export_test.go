package web

import (
	"maps"
	"slices"
)

// Actions returns the names of all actions.
func Actions() []string { return slices.Sorted(maps.Keys(actions)) }
