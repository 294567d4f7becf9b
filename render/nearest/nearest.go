// Package nearest finds the likely meaning of a misspelled word.
package nearest

import "strings"

// Word returns the candidate that is most similar to a misspelled word, or "".
func Word(word string, candidates []string) string {
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if strings.EqualFold(c, word) {
			return c
		}
		if d := Distance(strings.ToLower(word), strings.ToLower(c), bestDistance); d < bestDistance && d < len(word) {
			best, bestDistance = c, d
		}
	}
	return best
}

// Distance returns the number of single-character edits between two words, or limit if it is not smaller. An edit
// inserts, deletes or replaces a character, or swaps two adjacent ones.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 200 {
		return limit
	}
	// The rows are the distances of the first i-2, i-1 and i characters of a from each beginning of b.
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return min(row[len(b)], limit)
}
