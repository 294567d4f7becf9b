package targetspec

import (
	"regexp"
	"slices"
	"strings"
)

// Dependencies returns the names that the target self waits for, according to dependsOn. m is the match of
// its path, whose texts replace {n}. If an entry matches self, only the entries before it count. So one list
// can order the targets of a path: with [canary], all targets except canary wait for canary.
func (t *Target) Dependencies(self string, m Match, names []string) []string {
	var out []string
	for _, entry := range t.DependsOn {
		if !strings.Contains(entry, "*") {
			// The target waits even for an unknown name, because a commit may add it.
			name := NameFor(entry, m)
			if name == self {
				break
			}
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
			continue
		}
		matches := wildcard(entry, m)
		if matches.MatchString(self) {
			break
		}
		for _, name := range names {
			if matches.MatchString(name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func wildcard(entry string, m Match) *regexp.Regexp {
	var parts []string
	for part := range strings.SplitSeq(entry, "*") {
		parts = append(parts, regexp.QuoteMeta(NameFor(part, m)))
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
}

// Overlap reports whether two patterns match a common name. In a pattern, * and {n} match any text.
func Overlap(a, b string) bool {
	x, y := Placeholder.ReplaceAllString(a, "*"), Placeholder.ReplaceAllString(b, "*")
	// reach[i][j] says that some text matches both x[:i] and y[:j].
	reach := make([][]bool, len(x)+2)
	for i := range reach {
		reach[i] = make([]bool, len(y)+2)
	}
	reach[0][0] = true
	for i := range len(x) + 1 {
		for j := range len(y) + 1 {
			if !reach[i][j] {
				continue
			}
			starX, starY := i < len(x) && x[i] == '*', j < len(y) && y[j] == '*'
			if starX || starY {
				reach[i+1][j] = reach[i+1][j] || starX || i < len(x)
				reach[i][j+1] = reach[i][j+1] || starY || j < len(y)
			} else if i < len(x) && j < len(y) && x[i] == y[j] {
				reach[i+1][j+1] = true
			}
		}
	}
	return reach[len(x)][len(y)]
}
