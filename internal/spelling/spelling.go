// Package spelling finds the name that a user probably meant.
package spelling

import "strings"

// Nearest returns the candidate that is most similar to word, or an empty string if none is similar enough. It ignores dashes and
// underscores. Long names, of at least seven letters each, may differ by two edits. Other names may differ by one edit only, and must begin
// with the same letter, or with the first two letters swapped. Otherwise many short names would be similar by chance.
func Nearest(word string, candidates []string) string {
	word = letters(word)
	nearest, fewest := "", 3
	for _, candidate := range candidates {
		name := letters(candidate)
		allowed := 1
		if min(len(word), len(name)) >= 7 {
			allowed = 2
		}
		if min(len(word), len(name)) < 2 || max(len(word), len(name)) < 3 || len(word) > len(name)+allowed {
			continue
		}
		sameStart := word[0] == name[0] || word[0] == name[1] && word[1] == name[0]
		if n := edits(word, name); n <= allowed && n < fewest && (sameStart || allowed == 2) {
			nearest, fewest = candidate, n
		}
	}
	return nearest
}

func letters(name string) string { return strings.NewReplacer("-", "", "_", "").Replace(name) }

// edits returns the smallest number of edits that turn a into b. An edit inserts, deletes or replaces a byte, or swaps two neighbours.
func edits(a, b string) int {
	// These are three rows of the table of edit distances between the prefixes of a and b: the current row and the two before it.
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, above, row = above, row, before
		row[0] = i + 1
		for j := range len(b) {
			replaced := above[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
