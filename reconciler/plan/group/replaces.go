package group

import (
	"reflect"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/render/intent"
)

// whyRoll describes the machines that make a refresh due.
func whyRoll(have observed.Group, version template.Version, versions, types int) string {
	of := " of " + strconv.Itoa(len(have.Instances)) + " instances "
	switch {
	case versions+types == 0:
		return "the mixed instances policy differs"
	case versions == 0:
		return strconv.Itoa(types) + of + "have an instance type that is no longer wanted"
	case types > 0:
		return strconv.Itoa(versions+types) + of + "do not run version " + version.Version() + ", or have an instance type that is no longer wanted"
	}
	return strconv.Itoa(versions) + of + "do not run version " + version.Version()
}

// replaces returns the number of machines that a refresh replaces, whether it may end any, and a
// text if that does not follow from the machines that made it due. Skip matching leaves machines
// alone that have the wanted version, type and image. So a change in the choice of types replaces
// none. If types are chosen by requirements, only AWS knows which machines match.
func (l launching) replaces(g *governed, due int) (machines int, ends bool, how string) {
	if skip := l.pool.Group.Refresh.SkipMatching; skip != nil && !*skip && !g.Governed {
		for _, i := range l.have.Instances {
			if !i.Leaving() {
				machines++
			}
		}
		if machines > due {
			how = "; skipMatching is false, so all " + strconv.Itoa(machines) + " instances are replaced"
		}
		return machines, machines > 0, how
	}
	switch {
	case due > 0:
		return due, true, ""
	case l.have.UnknownPolicy, len(wantedTypes(l.pool)) == 0 && !sameOverrides(l.have.MixedInstancesPolicy, l.pool.Group.MixedInstancesPolicy):
		return 0, true, "; AWS replaces the instances that do not match it"
	}
	return 0, false, "; no instance is replaced, as all of them match it"
}

func sameOverrides(a, b *intent.MixedInstances) bool {
	return a != nil && b != nil && reflect.DeepEqual(a.Overrides, b.Overrides)
}
