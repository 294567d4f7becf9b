package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render/diag"
)

// resolveDependencies finds the targets that each item waits for. It reports items that would wait forever, because a
// target does not exist or because targets wait for each other in a ring. Their steps are planned and held.
func resolveDependencies(items []*item) {
	names := make([]string, len(items))
	byName := make(map[string]*item, len(items))
	for i, it := range items {
		names[i], byName[it.name] = it.name, it
	}
	slices.Sort(names)
	waits := false
	for _, it := range items {
		if len(it.target.DependsOn) == 0 || it.unknown {
			continue
		}
		it.waitsFor = it.target.Dependencies(it.name, it.match, names)
		waits = waits || len(it.waitsFor) > 0
		for _, name := range it.waitsFor {
			if byName[name] == nil && !mayCome(items, name) {
				it.refuse("unknown-dependency", fmt.Sprintf("the target %s waits for the target %s, but no directory of the commit defines that target", it.name, name),
					"Add the directory, or correct dependsOn of the target in weir's configuration. Until then weir changes nothing of "+it.name+".")
			}
		}
	}
	if !waits {
		return
	}
	refused := map[*item]bool{}
	for _, ring := range rings(items, byName) {
		var way []string
		for _, it := range ring {
			if way = append(way, it.name); len(way) == mostNamed {
				way = append(way, "…")
				break
			}
		}
		for _, it := range ring {
			if refused[it] {
				continue
			}
			refused[it] = true
			it.refuse("dependency-cycle", "targets wait for each other: "+strings.Join(append(way, ring[0].name), " waits for "),
				"Correct dependsOn of these targets in weir's configuration, or the names of their directories. Until then weir changes nothing of them.")
		}
	}
}

// mostNamed bounds the targets of a ring that a message names.
const mostNamed = 10

// refuse adds an error to an item that its build does not have.
func (it *item) refuse(code, summary, detail string) {
	it.desired.Diagnostics = append(slices.Clone(it.desired.Diagnostics), diag.Diagnostic{Severity: diag.Error, Code: code, Summary: summary, Detail: detail}).Sorted()
}

// mayCome reports whether a target of the name may exist, because a source cannot be read.
func mayCome(items []*item, name string) bool {
	return slices.ContainsFunc(items, func(it *item) bool {
		return it.unlisted() && targetspec.Overlap(it.target.Name, name)
	})
}

// rings returns items that wait for each other. It finds at least one ring in each set of items with rings.
func rings(items []*item, byName map[string]*item) (out [][]*item) {
	const open, done = 1, 2
	state, inRing := make(map[*item]int, len(items)), map[*item]bool{}
	var way []*item
	var visit func(it *item)
	visit = func(it *item) {
		state[it] = open
		way = append(way, it)
		for _, name := range it.waitsFor {
			switch next := byName[name]; {
			case next == nil || state[next] == done:
			case state[next] == open && inRing[it] && inRing[next]:
			case state[next] == open:
				ring := slices.Clone(way[slices.Index(way, next):])
				for _, one := range ring {
					inRing[one] = true
				}
				out = append(out, ring)
			default:
				visit(next)
			}
		}
		way = way[:len(way)-1]
		state[it] = done
	}
	for _, it := range items {
		if state[it] == 0 {
			visit(it)
		}
	}
	return out
}
