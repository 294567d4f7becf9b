package diag

import (
	"fmt"
	"strconv"
	"strings"
)

// Finding is a diagnostic and the validated paths that have it. Overlays with a common base have the same
// faults.
type Finding struct {
	Diagnostic
	Paths []string `json:"paths"`
}

// identity has the properties that make two diagnostics equal. It includes the object only if the position is
// unknown. A line of a shared base is one fault, even if many rendered objects contain it.
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

// Merge combines the diagnostics of several paths. It returns each diagnostic once, in the order of Sorted,
// with its paths in the given order. lists[i] belongs to paths[i].
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

// Folded is a diagnostic that represents all diagnostics that differ only in their object.
type Folded struct {
	Diagnostic
	// Others are the objects of the other diagnostics, in order.
	Others []string
}

// Fold merges warnings and notes that differ only in object and place into the first one. Errors stay
// separate, because each of them has its own place to fix.
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

// Also lists the objects of the merged diagnostics, at most a few of them. It is empty if there was only one.
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
