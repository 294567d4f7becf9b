package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/gates/calendar"
	"github.com/weir-gitops/weir/reconciler/target"
)

func (v *validator) windows(at string, windows []target.Window) {
	for i, w := range windows {
		at := fmt.Sprintf("%s[%d]", at, i)
		if w.Kind != target.Allow && w.Kind != target.Deny {
			v.fault(at+".kind", "bad-value", "", "want %s or %s, got %q", target.Allow, target.Deny, w.Kind)
		}
		for j, d := range w.Days {
			if !slices.Contains(target.Weekdays, d) {
				v.fault(fmt.Sprintf("%s.days[%d]", at, j), "bad-value", "", "want one of mon, tue, wed, thu, fri, sat and sun, got %q", d)
			}
		}
		if _, err := w.Zone(); err != nil {
			v.fault(at+".timezone", "bad-value", "write an IANA name such as Europe/Berlin or UTC", "%q is no time zone", w.Timezone)
		}
		_, ends := v.decoder.at[at+".end"]
		switch {
		case ends && w.Duration != 0:
			v.fault(at+".duration", "bad-value", "", "give the end or the duration")
		case w.Duration < 0 || w.Duration > calendar.Longest:
			v.fault(at+".duration", "bad-value", "", "must be between 1s and %s", "168h")
		case ends && w.End == w.Start:
			v.fault(at+".end", "bad-value", "write 24:00 for the end of the day", "the window ends when it begins")
		}
		if w.Start == 24*60 {
			v.fault(at+".start", "bad-value", "", "a day begins at 00:00")
		}
	}
}

// dependencies checks what targets wait for: that there are such targets, and
// that none waits for itself by way of another.
func (v *validator) dependencies() {
	targets := v.config.Targets
	edges := make([][]int, len(targets))
	for i := range targets {
		t := &targets[i]
		glob, err := target.ParseGlob(t.Path)
		if err != nil {
			continue // said before
		}
		for j, entry := range t.DependsOn {
			at := fmt.Sprintf("targets[%d].dependsOn[%d]", i, j)
			if !dependencyPattern.MatchString(entry) {
				v.fault(at, "bad-value", "", "%q: write the name of a target, in which * stands for any text", entry)
				continue
			}
			for _, m := range target.Placeholder.FindAllStringSubmatch(entry, -1) {
				if n := int(m[1][0] - '0'); n > glob.Wildcards() {
					v.fault(at, "bad-value", "", "{%d} stands for a wildcard that path %q does not have", n, t.Path)
				}
			}
			known := false
			for k := range targets {
				if !target.Overlap(entry, targets[k].Name) {
					continue
				}
				known = true
				if k != i {
					edges[i] = append(edges[i], k)
				} else if !target.Placeholder.MatchString(t.Name) && entry == t.Name {
					v.fault(at, "dependency-cycle", "", "the target %s would wait for itself", t.Name)
				}
			}
			if !known {
				v.fault(at, "unknown-dependency", "", "there is no target %q", entry)
			}
		}
	}
	if cycle := findCycle(edges); cycle != nil {
		var names []string
		for _, n := range cycle {
			names = append(names, targets[n].Name)
		}
		v.fault(fmt.Sprintf("targets[%d].dependsOn", cycle[0]), "dependency-cycle", "take one of them out",
			"targets wait for each other: %s", strings.Join(names, " waits for "))
	}
}

// dependencyPattern is that of a target's name, with wildcards.
var dependencyPattern = regexp.MustCompile(`^(?:[A-Za-z0-9_*]|\{[1-9]\})(?:[A-Za-z0-9._*-]|\{[1-9]\}){0,255}$`)

// findCycle returns a way along edges that ends where it begins, or nil.
func findCycle(edges [][]int) []int {
	const untouched, open, done = 0, 1, 2
	state := make([]int, len(edges))
	var way []int
	var visit func(n int) []int
	visit = func(n int) []int {
		state[n] = open
		way = append(way, n)
		for _, next := range edges[n] {
			if state[next] == open {
				return append(slices.Clone(way[slices.Index(way, next):]), next)
			}
			if state[next] == untouched {
				if cycle := visit(next); cycle != nil {
					return cycle
				}
			}
		}
		way = way[:len(way)-1]
		state[n] = done
		return nil
	}
	for n := range edges {
		if state[n] == untouched {
			if cycle := visit(n); cycle != nil {
				return cycle
			}
		}
	}
	return nil
}

// MayHave reports whether the configuration may give a target of the name: those
// of a path with wildcards are known when its source is read.
func (c *Config) MayHave(name string) bool {
	return slices.ContainsFunc(c.Targets, func(t target.Target) bool { return target.Overlap(t.Name, name) })
}
