// Package importer makes manifests of resources that exist in AWS: a MachinePool with its infrastructure
// object, PoolOptions if needed, and the objects of their clusters.
//
// It is a pure function of the observed state, and the inverse of rendering. It writes fields where the
// table of package field says that they are read, so a new row of the table is imported too; otherwise a
// test fails.
//
// Launch templates stay unchanged: a pool names the template of its group or nodegroup as a foreign
// template, unless its manifests can express the contents without replacing machines (own.go). User data may
// contain secrets. It becomes a bootstrap configuration only if that renders the same data and the data can
// contain no secret, and otherwise a Secret (bootstrap.go). The result lists everything that manifests
// cannot express, and refuses with a reason what cannot be imported. Nothing is omitted silently.
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

// State is the degree to which a group or nodegroup became manifests.
type State string

// The states of a pool.
const (
	Whole   State = "whole"
	Partly  State = "partly" // Notes lists the parts that manifests cannot express
	Refused State = "refused"
)

// Note is a remark about one field.
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
	Reason  string          `json:"reason,omitempty"` // why it was refused
	// Key is the MachinePool's name. File is the path of its manifests, below the directory.
	Key  string `json:"pool,omitempty"`
	File string `json:"file,omitempty"`
	// Template is the launch template that the pool names or that its manifests describe.
	Template string `json:"launchTemplate,omitempty"`
	// Owned says that its manifests describe the launch template. Configuration is the launch configuration
	// that becomes a template in this way.
	Owned         bool   `json:"ownLaunchTemplate,omitempty"`
	Configuration string `json:"launchConfiguration,omitempty"`
	// SecretFile is the path of its user data, below the directory.
	SecretFile string `json:"secretFile,omitempty"`
	Notes      []Note `json:"notes,omitempty"`
	// Advice lists facts that a user should know before weir adopts the pool.
	Advice []string `json:"advice,omitempty"`
	// Conversions lists the changes that apply makes after the adoption.
	Conversions []string `json:"conversions,omitempty"`

	objects []object
	secret  *Secret
	groups  []string                 // security groups of the template in its manifests
	holds   observed.TemplateVersion // the existing version, if its manifests describe it
	other   *Pool                    // fallback: described in another way, or naming the template
	before  string                   // why the first way of describing it failed
}

// Options contain facts that cannot be observed.
type Options struct {
	// Cluster is the cluster of groups whose tags name none.
	Cluster string
	// Templates selects the pools whose manifests describe the launch template. It defaults to Auto.
	Templates Templates
	// Secrets allows Secrets, which are then encrypted. Plain allows user data of any content in plain text
	// in manifests.
	Secrets, Plain bool
}

// Make makes pools of all groups and nodegroups of a state, sorted by kind and name. The state must have the
// hooks of its groups, and all EKS clusters must be among its clusters.
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
	called  map[string]int  // number of nodegroups by Kubernetes name
}

// behind returns the nodegroup in the state to which a group belongs, or nil.
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

// refuse returns why a resource with the tags must not be imported, or an empty string.
func refuse(tags map[string]string) string {
	if owner := tags[observed.TagOwner]; owner != "" {
		return "the weir instance " + observed.Quote(owner) + " has it already, so Git describes it"
	}
	return model.OfAnotherTool(tags)
}

// clusterOf returns the cluster that the tags name, or why it is not unique.
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

// additionalTags returns the user's own tags.
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

// foreign lists prefixes of tag keys that AWS or a tool writes.
var foreign = []string{"aws:", "eks:", observed.OwnTagPrefix, observed.TagClusterPrefix, tagKubernetes, "k8s.io/cluster-autoscaler/"}

// done sets the pool's state according to its notes.
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

// keepingTemplateBecause adds to the pool's advice that its manifest only names the existing launch
// template, and why it does not describe the template.
func (p Pool) keepingTemplateBecause(why string) Pool {
	p.Advice = append(slices.Clone(p.Advice), "the manifest only names the existing launch template, which weir does not change, because it cannot describe it: "+why)
	return p
}

// Gives reports whether a launch template made from the pool's manifests starts the same machines as now,
// except for launch tags. A plan does not show this if the pool has no machines to replace.
func (p Pool) Gives(made intent.TemplateData) bool { return template.SameButTags(p.holds, made) }

// Differs names the launch template members, in AWS's spelling, that differ between the pool's template and
// one made from its manifests. User data is one member.
func (p Pool) Differs(made intent.TemplateData) []string {
	holds := p.holds.Data
	holds.TagSpecifications, made.TagSpecifications = nil, nil
	var have, want map[string]any
	if json.Unmarshal(content.Canonical(holds), &have) != nil || json.Unmarshal(content.Canonical(made), &want) != nil {
		return nil
	}
	return differing("", have, want)
}

// differing names the members in which two JSON values differ. It descends into objects.
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
	case p.other.Owned: // described in another way
		out := *p.other
		out.before = why
		return out
	}
	// The other way may also have failed for a different reason.
	if p.before != "" && len(p.before) < len(why) {
		why = p.before
	}
	return p.other.keepingTemplateBecause(why)
}
