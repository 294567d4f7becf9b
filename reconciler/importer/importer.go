// Package importer makes manifests of what AWS holds already: a MachinePool with its infrastructure
// object, a PoolOptions if needed, and the objects of their clusters.
//
// It is a pure function over what was observed, and the inverse of rendering: fields are written
// where the table of package field says that they are read, so a field that the table gains is
// imported too, and a test fails if it is not. Launch templates stay what they are: a pool names
// the template of its group or nodegroup as a foreign template, unless its manifests can express
// the contents and that replaces nothing (own.go). User data, which may hold secrets, becomes a
// bootstrap configuration only if that renders the same data and the data can hold no secret, and
// else a Secret (bootstrap.go). The result names what manifests cannot express, and refuses with a
// reason what cannot be imported. Nothing is omitted silently.
package importer

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/render/intent"
)

// State says how much of a group or nodegroup became manifests.
type State string

// The states of a pool.
const (
	Whole   State = "whole"
	Partly  State = "partly" // Notes say what manifests cannot say
	Refused State = "refused"
)

// Note is something about one field.
type Note struct {
	Field string `json:"field"`
	Text  string `json:"text"`
}

// Pool is the result for one group or nodegroup.
type Pool struct {
	Kind    intent.PoolKind `json:"kind"`
	Name    string          `json:"name"` // in AWS
	Cluster string          `json:"cluster,omitempty"`
	State   State           `json:"state"`
	Reason  string          `json:"reason,omitempty"` // why it is refused
	// Key is the MachinePool's name, and File has its manifests, below the directory.
	Key  string `json:"pool,omitempty"`
	File string `json:"file,omitempty"`
	// Template is the launch template that the pool names, or that its manifests say.
	Template string `json:"launchTemplate,omitempty"`
	// Owned says that its manifests say what it launches, Configuration the launch
	// configuration that becomes a template by that.
	Owned         bool   `json:"ownLaunchTemplate,omitempty"`
	Configuration string `json:"launchConfiguration,omitempty"`
	// SecretFile has its user data, below the directory.
	SecretFile string `json:"secretFile,omitempty"`
	Notes      []Note `json:"notes,omitempty"`
	// Advice lists what a user should know before weir adopts the pool.
	Advice []string `json:"advice,omitempty"`
	// Conversions lists what apply changes once the pool is adopted.
	Conversions []string `json:"conversions,omitempty"`

	objects []object
	secret  *Secret
	groups  []string                 // security groups of the template that its manifests say
	holds   observed.TemplateVersion // what it launches from, where its manifests say that
	other   *Pool                    // what it is where this does not do: said in another way, or named
	before  string                   // why it is not said in the way that was tried first
}

// Options say what cannot be observed.
type Options struct {
	// Cluster is that of groups whose tags name none.
	Cluster string
	// Templates says which pools say what they launch, Auto where it is "".
	Templates Templates
	// Secrets says that Secrets may be written, which are then encrypted; Plain that
	// whatever user data holds may stand in manifests as it is.
	Secrets, Plain bool
}

// Make makes pools of all groups and nodegroups of a state, sorted by kind and name. The
// state has the hooks of its groups, and among its clusters those of EKS.
func Make(s observed.State, o Options) []Pool {
	var out []Pool
	m := maker{state: s, options: o, taken: map[string]bool{}, called: counted(s)}
	for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
		if g := s.Groups[name]; m.behind(g) == nil {
			out = append(out, m.group(g))
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(s.Nodegroups), func(a, b observed.NodegroupName) int { return strings.Compare(a.String(), b.String()) }) {
		out = append(out, m.nodegroup(s.Nodegroups[name]))
	}
	return out
}

type maker struct {
	state   observed.State
	options Options
	taken   map[string]bool // names of MachinePools
	called  map[string]int  // how many nodegroups have a name, as Kubernetes takes it
}

// behind is the nodegroup of the state that a group is behind, nil for none.
func (m *maker) behind(g observed.Group) *observed.Nodegroup {
	n, ok := m.state.Nodegroups[observed.NodegroupName{Cluster: g.Tags[tagEKSCluster].Value, Name: g.Tags[observed.TagNodegroup].Value}]
	if !ok {
		return nil
	}
	return &n
}

const (
	tagEKSCluster = "eks:cluster-name"
	tagKubernetes = "kubernetes.io/cluster/"
)

// refuse says why nobody may import what has the tags, "" if that is allowed.
func refuse(tags map[string]string) string {
	if owner := tags[observed.TagOwner]; owner != "" {
		return "the weir instance " + observed.Quote(owner) + " has it already, so Git describes it"
	}
	return model.OfAnotherTool(tags)
}

// clusterOf is the cluster that tags name, and the reason where that is not one.
func (m *maker) clusterOf(tags map[string]string) (name, why string) {
	found := map[string]bool{}
	for k, v := range tags {
		if n, ok := strings.CutPrefix(k, observed.TagClusterPrefix); ok {
			found[n] = true
		}
		if n, ok := strings.CutPrefix(k, tagKubernetes); ok && (v == "owned" || v == "shared") {
			found[n] = true
		}
	}
	names := slices.Sorted(maps.Keys(found))
	switch {
	case len(names) > 1:
		return "", "its tags name several clusters: " + strings.Join(names, ", ")
	case len(names) == 1:
		return names[0], ""
	case m.options.Cluster == "":
		return "", "no tag says which cluster its machines join; name the group and its cluster: --group NAME --cluster CLUSTER"
	}
	return m.options.Cluster, ""
}

// additionalTags are those of the tags that are nobody's but the user's.
func additionalTags(tags map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range tags {
		if k == "Name" || k == observed.TagCAPARole || slices.ContainsFunc(foreign, func(prefix string) bool { return strings.HasPrefix(k, prefix) }) {
			continue
		}
		out[k] = v
	}
	return out
}

// foreign begin the keys of tags that AWS or a tool writes.
var foreign = []string{"aws:", "eks:", observed.OwnTagPrefix, observed.TagClusterPrefix, tagKubernetes, "k8s.io/cluster-autoscaler/"}

// done is the pool with the state that follows from its notes.
func (p Pool) done() Pool {
	p.State = Whole
	if len(p.Notes) > 0 {
		p.State = Partly
	}
	return p
}

func (p Pool) refused(why string) Pool {
	p.State, p.Reason, p.Key, p.File, p.Notes, p.Advice, p.Conversions, p.objects = Refused, why, "", "", nil, nil, nil, nil
	p.Owned, p.SecretFile, p.secret, p.groups, p.other = false, "", nil, nil, nil
	return p
}

// namedBecause is a pool that names its template, with the reason.
func (p Pool) namedBecause(why string) Pool {
	p.Advice = append(slices.Clone(p.Advice), "its launch template is named, and stays what it is: "+why)
	return p
}

// Gives reports whether a launch template that is made of the pool's manifests starts the
// machines that it launches now, but for the tags of launches. A plan does not tell where
// the pool has no machine that would have to be replaced.
func (p Pool) Gives(made intent.TemplateData) bool { return template.SameButTags(p.holds, made) }

// Differs names the members of a launch template, in AWS's words, that differ between the pool's
// actual template and the one made of its manifests. User data has one name for all its content.
func (p Pool) Differs(made intent.TemplateData) []string {
	holds := p.holds.Data
	holds.TagSpecifications, made.TagSpecifications = nil, nil
	var have, want map[string]any
	if json.Unmarshal(content.Canonical(holds), &have) != nil || json.Unmarshal(content.Canonical(made), &want) != nil {
		return nil
	}
	return differing("", have, want)
}

// differing names the members in which two JSON values differ, to the depth of objects.
func differing(at string, a, b any) []string {
	x, of := a.(map[string]any)
	y, with := b.(map[string]any)
	if !of || !with {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []string{at}
	}
	all := maps.Clone(x)
	maps.Copy(all, y)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, differing(strings.TrimPrefix(at+"."+name, "."), x[name], y[name])...)
	}
	return out
}

// Refuse returns the pool as refused, with a reason. If its manifests describe its template's
// contents, Refuse returns the pool that names the template instead.
func (p Pool) Refuse(why string) Pool {
	switch {
	case p.other == nil || p.other.State == Refused:
		return p.refused(why)
	case p.other.Owned: // said in another way
		out := *p.other
		out.before = why
		return out
	}
	// The other way may have failed for a reason of its own beside the first one.
	if p.before != "" && len(p.before) < len(why) {
		why = p.before
	}
	return p.other.namedBecause(why)
}
