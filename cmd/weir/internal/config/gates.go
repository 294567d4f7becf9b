package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/gates/calendar"
	"github.com/weir-gitops/weir/reconciler/targetspec"
)

// windows validates the times of maintenance windows. at is their position in the configuration.
func (v *validator) windows(at string, windows []targetspec.Window) {
	for i, w := range windows {
		at := fmt.Sprintf("%s[%d]", at, i)
		ends := v.found.written(at + ".end")
		switch {
		case ends && w.Duration != 0:
			v.found.fault(at+".duration", "bad-value", "", "give the end or the duration")
		case w.Duration < 0 || w.Duration > calendar.Longest:
			v.found.fault(at+".duration", "bad-value", "", "must be between 1s and %s", "168h")
		case ends && w.End == w.Start:
			v.found.fault(at+".end", "bad-value", "write 24:00 for the end of the day", "the window ends when it begins")
		}
		if w.Start == 24*60 {
			v.found.fault(at+".start", "bad-value", "", "a day begins at 00:00")
		}
	}
}

// mostDemanded is the maximum of numbers in a FleetRollout, whose fields have 32 bits.
const mostDemanded = 1 << 30

func (v *validator) demand(at string, d targetspec.Demand) {
	for key, n := range map[string]int{"minWaves": d.MinWaves, "maxMachines": d.MaxMachines} {
		switch at := at + "." + key; {
		case !v.found.written(at):
		case n < 1 || n > mostDemanded:
			v.found.fault(at, "bad-value", "write 1 or more, or leave the key out", "%d is out of range", n)
		case !d.Required:
			v.found.fault(at, "bad-value", "add required: true", "it demands nothing by itself")
		}
	}
}

// dependencies checks that targets depend only on existing targets, and that no target depends on itself
// through others.
func (v *validator) dependencies() {
	targets := v.config.Targets
	edges := make([][]int, len(targets))
	for i := range targets {
		t := &targets[i]
		glob, err := targetspec.ParseGlob(t.Path)
		if err != nil {
			continue // already reported
		}
		for j, entry := range t.DependsOn {
			at := fmt.Sprintf("targets[%d].dependsOn[%d]", i, j)
			if !dependencyPattern.MatchString(entry) {
				continue // already reported
			}
			v.placeholders(at, entry, glob)
			known := false
			for k := range targets {
				if !targetspec.Overlap(entry, targets[k].Name) {
					continue
				}
				known = true
				if k != i {
					edges[i] = append(edges[i], k)
				} else if !targetspec.Placeholder.MatchString(t.Name) && entry == t.Name {
					v.found.fault(at, "dependency-cycle", "", "the target %s would wait for itself", t.Name)
				}
			}
			if !known {
				v.found.fault(at, "unknown-dependency", "", "there is no target %q", entry)
			}
		}
	}
	if cycle := findCycle(edges); cycle != nil {
		var names []string
		for _, n := range cycle {
			names = append(names, targets[n].Name)
		}
		v.found.fault(fmt.Sprintf("targets[%d].dependsOn", cycle[0]), "dependency-cycle", "take one of them out",
			"targets wait for each other: %s", strings.Join(names, " waits for "))
	}
}

// findCycle returns a cycle of edges, or nil.
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

// MayHave reports whether the configuration may contain a target with the name. Targets of a path with
// wildcards are known only after their source was read.
func (c *Config) MayHave(name string) bool {
	return slices.ContainsFunc(c.Targets, func(t targetspec.Target) bool { return targetspec.Overlap(t.Name, name) })
}
