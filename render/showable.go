package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/secret"
)

// The message of a finding may hold a piece of a secret. So each finding is looked for
// in the second build too: where that build does not find it with the same message, the
// finding gets the general message of its code.

// showable are the findings of a build as they may be shown.
func showable(list diag.List, again *kust.Again) diag.List {
	if again == nil {
		return list
	}
	return generalized(list, again.Diags)
}

func generalized(list, again diag.List) diag.List {
	known := map[string]bool{}
	for _, d := range again {
		known[wording(d)] = true
	}
	out := slices.Clone(list)
	for i, d := range out {
		if !known[wording(d)] {
			out[i] = generic(d)
			out[i].Object, out[i].Field = "", ""
		}
	}
	return out
}

// wording is all that a finding says, without its place.
func wording(d diag.Diagnostic) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q %q %q %q %q", d.Severity, d.Code, d.Summary, d.Detail, d.Object, d.Field)
	for _, r := range d.Related {
		fmt.Fprintf(&b, " %q", r.Message)
	}
	return b.String()
}

// generic is a finding with the message of its code.
func generic(d diag.Diagnostic) diag.Diagnostic {
	rule, _ := diag.RuleOf(d.Code)
	d.Summary, d.Related = rule.Short, nil
	d.Detail = strings.TrimSpace(rule.Help + " The message would say something that depends on a secret value, so it is left out.")
	return d
}

// generalizedFaults is generalized for the findings about objects, whose objects and fields can be
// shown in part.
func (d *dependence) generalizedFaults(list, again []kinds.Fault) []kinds.Fault {
	known := map[string]bool{}
	for _, f := range again {
		known[wordingOf(f)] = true
	}
	out := slices.Clone(list)
	for i, f := range out {
		if !known[wordingOf(f)] {
			g := generic(f.Diagnostic())
			out[i].Summary, out[i].Detail, out[i].Related = g.Summary, g.Detail, nil
		}
	}
	return out
}

func wordingOf(f kinds.Fault) string {
	var b strings.Builder
	b.WriteString(wording(f.Diagnostic()))
	for _, r := range f.Related {
		fmt.Fprintf(&b, " %q %q %q", r.Ref, r.Path, r.Message)
	}
	return b.String()
}

// faultsBut are the faults about other fields than those that some are about already.
func (d *dependence) faultsBut(some []kinds.Fault) []kinds.Fault {
	about := map[string]bool{}
	for _, f := range some {
		about[fieldID(f.Ref, f.Path)] = true
	}
	return slices.DeleteFunc(slices.Clone(d.faults), func(f kinds.Fault) bool { return about[fieldID(f.Ref, f.Path)] })
}

// renamed is Renamed of a build, without names that depend on a secret.
func (d *dependence) renamed(renamed func(kind, oldName string) (string, bool)) func(kind, oldName string) (string, bool) {
	return func(kind, oldName string) (string, bool) {
		name, ok := renamed(kind, oldName)
		if d == nil {
			return name, ok
		}
		for ref := range d.refs {
			if ok && ref.Kind == kind && ref.Name == name {
				name = secret.Mask
			}
		}
		return name, ok
	}
}

// hasMessages reports whether there is any finding, or any object that weir passes by.
// Otherwise all that weir shows consists of plain fields, which have been compared
// already.
func (d *dependence) hasMessages(set *intent.Set, faults []kinds.Fault) bool {
	return len(faults)+len(d.faults)+len(set.Ignored) > 0 || slices.ContainsFunc(set.Pools, func(p intent.Pool) bool { return len(p.Blocked) > 0 })
}

// compareSets finds what weir itself has made of user data outside of it, and keeps
// what may not be shown out of the set. None of today's fields is made so, to which
// TestUserDataDecidesNothingElse holds them.
func (d *dependence) compareSets(set *intent.Set, again intent.Set) {
	named := map[intent.ObjectRef]bool{}
	for _, f := range d.faults {
		named[f.Ref] = true
	}
	for _, p := range set.Pools {
		other := again.Pool(p.Key.String())
		if other != nil && !named[p.MachinePool] && !named[p.Infrastructure] && !reflect.DeepEqual(bare(p), bare(*other)) {
			d.faults = append(d.faults, kinds.Fault{Severity: diag.Error, Code: plainField, Ref: p.MachinePool, Path: intent.Path{"spec"},
				Summary: fmt.Sprintf("%s depends on a secret value outside its user data", p.MachinePool), Detail: outOfField})
		}
	}
	if len(d.faults) == 0 && !reflect.DeepEqual(set.Clusters, again.Clusters) {
		d.faults = append(d.faults, kinds.Fault{Severity: diag.Error, Code: plainField, Summary: "the objects of a cluster depend on a secret value", Detail: outOfField})
	}
	set.Ignored = slices.Clone(set.Ignored)
	for i, kind := range set.Ignored {
		if !slices.ContainsFunc(again.Ignored, func(k intent.Ignored) bool { return k.APIVersion == kind.APIVersion && k.Kind == kind.Kind }) {
			set.Ignored[i].APIVersion, set.Ignored[i].Kind = secret.Mask, secret.Mask
		}
	}
	known := map[string]bool{}
	for _, p := range again.Pools {
		for _, b := range p.Blocked {
			known[wording(b)] = true
		}
	}
	for i := range set.Pools {
		p := &set.Pools[i]
		p.Blocked = slices.Clone(p.Blocked)
		for j, b := range p.Blocked {
			if !known[wording(b)] {
				p.Blocked[j] = generic(b)
			}
		}
	}
}

// bare is a pool without its user data.
func bare(p intent.Pool) intent.Pool {
	p.Blocked = nil
	if p.LaunchTemplate != nil {
		template := *p.LaunchTemplate
		template.UserData = intent.UserData{}
		p.LaunchTemplate = &template
	}
	return p
}
