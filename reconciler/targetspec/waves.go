package targetspec

import (
	"regexp"
	"slices"
	"strings"
)

// Dependencies are those of names that the target self waits for, which a path
// with the match m gave: what its dependsOn says, {n} standing for what the path's
// wildcards matched. Where an entry stands for self too, only the entries before it
// matter, so that a list puts targets of one path in order: with [canary], all but
// canary wait for canary.
func (t *Target) Dependencies(self string, m Match, names []string) []string {
	var out []string
	for _, entry := range t.DependsOn {
		if !strings.Contains(entry, "*") {
			// One that nothing gives is waited for: a commit may bring it.
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

// Overlap reports whether two patterns, in which * and {n} stand for any text,
// share a name.
func Overlap(a, b string) bool {
	x, y := Placeholder.ReplaceAllString(a, "*"), Placeholder.ReplaceAllString(b, "*")
	// reach[i][j] says that some text goes with x[:i] and with y[:j].
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
