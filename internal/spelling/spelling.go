// Package spelling finds the name that a person probably meant.
package spelling

import "github.com/xrash/smetrics"

// Nearest returns the candidate that is most similar to word, or an empty string if none is similar enough.
func Nearest(word string, candidates []string) string {
	best, score := "", 0.8
	for _, c := range candidates {
		if s := smetrics.JaroWinkler(word, c, 0.7, 4); s > score && len(word) < 100 {
			best, score = c, s
		}
	}
	return best
}
