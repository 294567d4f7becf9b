package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// An approved plan takes several passes, and the later passes have other steps. So weir stores an
// approval as a set of works: a step consists of works, each of one kind and about one resource or
// field of one pool or AWSLaunchConfig. A later pass runs a step if each of its works was approved,
// or follows from an approved work. Any other step needs an approval of its own.

// kind is the kind of a work.
type kind string

const (
	workMakes     kind = "makes"     // a launch template version, by its content
	workCreates   kind = "creates"   // a group or nodegroup
	workSets      kind = "sets"      // one field or tag
	workWrites    kind = "writes"    // a launch configuration to a group, replacing nothing
	workMeasures  kind = "measures"  // the unit of a group's capacity
	workPins      kind = "pins"      // a group to the versions that it launches anyway
	workDefaults  kind = "defaults"  // the default version
	workPrunes    kind = "prunes"    // earlier versions
	workAdopts    kind = "adopts"    // a resource of another owner
	workUnmarks   kind = "unmarks"   // removes weir's tag of an adopted pool
	workRolls     kind = "rolls"     // machines to one launch configuration; ends refreshes to others
	workShrinks   kind = "shrinks"   // a group or nodegroup whose machines end by a change of its fields
	workSucceeds  kind = "succeeds"  // a nodegroup, as its replacement
	workLeaves    kind = "leaves"    // a nodegroup that was replaced
	workDrops     kind = "drops"     // a group or nodegroup that Git no longer has, with all steps up to its deletion
	workDiscards  kind = "discards"  // a launch template that Git no longer has
	workSomething kind = "something" // any work of a pool
	workPlanned   kind = "planned"   // a pool for which nothing more could be planned yet
)

// follows lists the works that follow from other works: an approval that includes a work of the
// second kind also allows works of the first kind for the same pool. A work of kind "sets" follows
// only if no machine ends by it. If alike is set, both works must be about the same resource.
var follows = []struct {
	works, of []kind
	alike     bool
	why       string
}{
	{[]kind{workDefaults, workUnmarks}, []kind{workSomething}, false, "the default version moves to what machines run by then, and weir's mark goes with a rollout that is held for itself"},
	{[]kind{workPrunes}, []kind{workMakes}, false, "a version that is made takes the place of an earlier one"},
	{[]kind{workWrites}, []kind{workRolls}, true, "nothing runs by then that could be replaced"},
	{[]kind{workPins}, []kind{workMakes, workRolls, workWrites, workSucceeds}, false, "a group keeps what it launches while a version is made"},
	{[]kind{workSets, workWrites}, []kind{workCreates, workSucceeds}, false, "what a new group or nodegroup gets by calls of its own, and the group behind it"},
	{[]kind{workDiscards}, []kind{workDrops}, false, "a template outlives its group"},
	{[]kind{workMeasures}, []kind{workRolls, workWrites}, false, "a group takes another unit of capacity once it has the policy for that"},
	{[]kind{workMakes, workCreates, workSets}, []kind{workPlanned}, false, "a cluster that was still being made is there"},
}

// action identifies a work in the form that approvals store.
type action struct {
	kind kind
	at   string
}

// worksOf returns the works of a step. The wanted values are not part of them: a grant is valid
// only while the desired state stays as approved.
func worksOf(s step.Step) []action {
	switch k := kindOfStep(s); k {
	case workSets:
		return worksOfChanges(s)
	case workRolls:
		return []action{{k, s.Name + " " + s.Toward}}
	case workMakes:
		return []action{{k, s.Name + " " + s.About().Makes}}
	default:
		return []action{{k, resourceOf(s)}}
	}
}

// resourceOf names the resource that a step is about.
func resourceOf(s step.Step) string {
	return strings.Join([]string{string(s.Resource), s.About().EksCluster(), s.Name}, " ")
}

// kindOfStep returns the kind of a step's work. It returns workSets if the changes decide the kind.
func kindOfStep(s step.Step) kind {
	a := s.About()
	switch {
	case s.Do == nil:
		return workPlanned
	case model.TakesAdopted(s):
		return workUnmarks
	case s.Verb == step.Delete && s.Resource == step.LaunchTemplate:
		return workDiscards
	case s.Verb == step.Delete:
		return workDrops
	case s.Verb == step.Replace && a.Ends:
		return workLeaves
	case s.Verb == step.Replace:
		return workSucceeds
	case s.Verb == step.Rollout:
		return workRolls
	case s.Verb == step.PruneVersion:
		return workPrunes
	case s.Verb == step.Adopt:
		return workAdopts
	case a.Makes != "":
		return workMakes
	case s.Verb == step.Create:
		return workCreates
	}
	return workSets
}

// worksOfChanges returns the works of a step that changes fields of a resource, one for each field.
func worksOfChanges(s step.Step) (out []action) {
	at := resourceOf(s)
	for _, ch := range s.Changes {
		root, rest, _ := strings.Cut(strings.ReplaceAll(ch.Field, "[", "."), ".")
		launches := s.About().Launches != nil && (root == "launchTemplate" || root == "mixedInstancesPolicy")
		switch {
		case ch.Field == "defaultVersion" && s.Resource == step.LaunchTemplate:
			out = append(out, action{workDefaults, at})
		case ch.Field == "autoScalingGroup.desiredCapacityType":
			out = append(out, action{workMeasures, at})
		case launches && s.Toward == "":
			out = append(out, action{workPins, at})
		case launches:
			out = append(out, action{workWrites, s.Name + " " + s.Toward})
		case root == "lifecycleHooks": // a hook's member, or a hook that is recreated to clear one
			hook, _, _ := strings.Cut(rest, ".")
			out = append(out, action{workSets, at + " " + root + " " + hook})
		default:
			out = append(out, action{workSets, at + " " + ch.Field})
		}
	}
	if len(out) == 0 {
		out = []action{{workSets, at}}
	}
	if s.Disrupts() {
		out = append(out, action{workShrinks, at})
	}
	return out
}

// key identifies a work of an owner in a grant. With an empty at, it stands for works of the kind
// about any resource.
func (w action) key(owner string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{owner, string(w.kind), w.at}, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// GrantOf returns the grant for an approval of a plan.
func GrantOf(p *Plan) model.Grant {
	g := model.Grant{Digest: p.Digest(), Exact: true, Works: map[string]bool{}, Deletes: map[string]bool{}}
	for _, s := range p.Steps {
		if s.Verb == step.Delete && s.Pool != "" {
			g.Deletes[s.Pool] = true
		}
		if s.Stops {
			continue // it waits for no approval
		}
		for _, w := range append(worksOf(s), action{kind: workSomething}) {
			g.Works[w.key(s.Owner())], g.Works[action{kind: w.kind}.key(s.Owner())] = true, true
		}
	}
	return g
}

// grants reports whether the grant lets the plan run.
func grants(g *model.Grant, p *Plan) bool {
	return g != nil && g.Digest != "" && !p.Secretless && (!g.Exact || p.Digest() == g.Digest)
}

// allows reports whether the grant lets a step of a granted plan run. While the plan is the
// approved one, every step may.
func allows(g *model.Grant, s step.Step) bool {
	if g.Exact {
		return true
	}
	return !slices.ContainsFunc(worksOf(s), func(w action) bool {
		return !slices.ContainsFunc(append([]string{s.Owner()}, s.Pools...), func(owner string) bool { return approved(g, owner, w, s.Disrupts()) })
	})
}

// approved reports whether a work of an owner was approved, or follows from an approved work.
func approved(g *model.Grant, owner string, w action, disrupts bool) bool {
	if g.Works[w.key(owner)] {
		return true
	}
	for _, f := range follows {
		if !slices.Contains(f.works, w.kind) || w.kind == workSets && disrupts {
			continue
		}
		for _, k := range f.of {
			of := action{kind: k}
			if f.alike {
				of.at = w.at
			}
			if g.Works[of.key(owner)] {
				return true
			}
		}
	}
	return false
}
