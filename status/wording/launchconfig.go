package wording

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan"
)

// Versions contains the version of a shared launch template that a pool runs, and the version that it waits
// for, "" if none.
type Versions struct{ Runs, Wants string }

// VersionsOf returns the versions that each pool of a launch configuration runs and wants. Wants is empty
// if the pool runs only the wanted version.
func VersionsOf(s plan.LaunchConfigStatus) map[string]Versions {
	runs, wants := map[string][]string{}, map[string]string{}
	for _, v := range s.Versions {
		version := "v" + strconv.FormatInt(v.Version, 10)
		for _, p := range v.Pools {
			runs[p] = append(runs[p], version)
		}
		for _, p := range v.WantedBy {
			wants[p] = version
		}
	}
	out := make(map[string]Versions, len(s.Pools))
	for _, p := range s.Pools {
		v := Versions{strings.Join(runs[p], " and "), wants[p]}
		if slices.Equal(runs[p], []string{v.Wants}) {
			v.Wants = ""
		}
		out[p] = v
	}
	return out
}

// Runs lists the pools with their versions of the shared launch template, such as "default/api v1 → v2,
// default/web v2".
func Runs(s plan.LaunchConfigStatus) string {
	of := VersionsOf(s)
	out := make([]string, 0, len(s.Pools))
	for _, p := range s.Pools {
		text := p
		if v := of[p]; v.Runs != "" {
			text += " " + v.Runs
		}
		if v := of[p]; v.Wants != "" {
			text += " → " + v.Wants
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
