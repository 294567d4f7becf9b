package diag

// Finding is a diagnostic with the paths that were validated and have it:
// overlays that share a base find the same fault.
type Finding struct {
	Diagnostic
	Paths []string `json:"paths"`
}

// identity is what makes two diagnostics one. The object counts only where no
// position is known: the same line of a shared base is one fault however many
// rendered objects it reaches.
type identity struct {
	at            Position
	code, summary string
	severity      Severity
	object, field string
}

func (d Diagnostic) identity() identity {
	id := identity{at: d.Position, code: d.Code, summary: d.Summary, severity: d.Severity}
	if !d.Known() {
		id.object, id.field = d.Object, d.Field
	}
	return id
}

// Merge puts the diagnostics of several paths together: each once, in the order
// of Sorted, with the paths that have it in the order that they were given. The
// lists are parallel to the paths.
func Merge(paths []string, lists []List) []Finding {
	var all List
	has := map[identity][]string{}
	for n, list := range lists {
		for _, d := range list {
			id := d.identity()
			if seen := has[id]; len(seen) == 0 || seen[len(seen)-1] != paths[n] {
				has[id] = append(seen, paths[n])
			}
		}
		all = append(all, list...)
	}
	all = all.Sorted()
	out := make([]Finding, 0, len(all))
	for _, d := range all {
		out = append(out, Finding{Diagnostic: d, Paths: has[d.identity()]})
	}
	return out
}
