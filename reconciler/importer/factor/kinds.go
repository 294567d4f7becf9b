package factor

import (
	"maps"
	"slices"
	"strings"
)

// tellKinds adds the kinds of values to the signatures of pools if another pool has a value of
// another kind. No patch turns a scalar into a list or a map, and a patch that turns a quoted text
// into a number or a boolean results in a text, so these pools share no base.
func tellKinds(parts []*part) {
	seen := map[string]byte{}
	mixed := map[string]bool{}
	for _, p := range parts {
		for at, kind := range p.kinds() {
			if was, ok := seen[at]; ok && was != kind {
				mixed[at] = true
			}
			seen[at] = kind
		}
	}
	if len(mixed) == 0 {
		return
	}
	paths := slices.Sorted(maps.Keys(mixed))
	for _, p := range parts {
		own := p.kinds()
		for _, at := range paths {
			p.signature += joint + string(rune(own[at])) // 0 if it has none
		}
	}
}

// kinds returns the kinds of all values of a pool, by path.
func (p *part) kinds() map[string]byte {
	out := map[string]byte{}
	for _, l := range p.leaves {
		for n := range l.keys {
			out[l.role+joint+strings.Join(l.keys[:n], joint)] = 'm'
		}
		kind := byte('s')
		switch l.value.(type) {
		case string, follower:
			kind = 't'
		case []any:
			kind = 'l'
		case map[string]any:
			kind = 'm'
		}
		out[l.path] = kind
	}
	return out
}
