package diag

import (
	"fmt"
	"strconv"
	"strings"
)

// Finding is a diagnostic with the paths that were validated and have it:
// overlays that share a base find the same fault.
type Finding struct {
	Diagnostic
	Paths []string `json:"paths"`
}

// identity holds the properties by which two diagnostics are the same. The object is part of it
// only without a known position: the same line of a shared base is one fault however many rendered
// objects it reaches.
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

// Folded is a diagnostic that stands for those that are equal but for the object
// that they are about.
type Folded struct {
	Diagnostic
	// Others are the objects of the further ones, in their order.
	Others []string
}

// Fold puts warnings and notes that differ only in their object and place into
// the first of them. Errors stay as they are: each has a place to mend.
func (l List) Fold() []Folded {
	type kind struct {
		severity              Severity
		code, summary, detail string
	}
	at := map[kind]int{}
	var out []Folded
	for _, d := range l {
		if d.Severity == Error || d.Object == "" {
			out = append(out, Folded{Diagnostic: d})
			continue
		}
		_, name, _ := strings.Cut(d.Object, " ")
		unnamed := strings.NewReplacer(d.Object, "*", name, "*", strconv.Quote(name[strings.LastIndex(name, "/")+1:]), "*")
		k := kind{d.Severity, d.Code, unnamed.Replace(d.Summary), unnamed.Replace(d.Detail)}
		if first, have := at[k]; have {
			out[first].Others = append(out[first].Others, name)
			continue
		}
		at[k] = len(out)
		out = append(out, Folded{Diagnostic: d})
	}
	return out
}

// Also names the objects of those that were folded, the first few of many; empty
// if there is only one.
func (f Folded) Also() string {
	const most = 5
	switch n := len(f.Others); {
	case n == 0:
		return ""
	case n > most:
		return fmt.Sprintf("and %d more: %s, …", n, strings.Join(f.Others[:most], ", "))
	default:
		return fmt.Sprintf("and %d more: %s", n, strings.Join(f.Others, ", "))
	}
}
