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

// Distance returns the Levenshtein distance, or limit if the distance is not smaller.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 200 {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return min(row[len(b)], limit)
}
