package plan

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// LaunchConfigStatus is the status of an AWSLaunchConfig, written in Git or derived from an
// AWSLaunchConfigTemplate.
type LaunchConfigStatus struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Target    string `json:"target"`
	// Template is the name of the AWSLaunchConfigTemplate, empty without one.
	Template         string `json:"template,omitempty"`
	LaunchTemplateID string `json:"launchTemplateID,omitempty"`
	LatestVersion    int64  `json:"latestVersion,omitempty"`
	DefaultVersion   int64  `json:"defaultVersion,omitempty"`
	// Ready reports whether the launch template exists with the versions that Git wants. Its pools
	// wait for that.
	Ready      bool        `json:"ready"`
	Conditions []Condition `json:"conditions"`
	// Pools are the pools that use it, as namespace/name.
	Pools []string `json:"pools"`
	// Versions lists the versions that pools run or that Git wants for them, ascending.
	Versions []SharedVersion `json:"versions"`
}

// SharedVersion is a version of a launch template that pools share.
type SharedVersion struct {
	Version int64 `json:"version"`
	Default bool  `json:"default"`
	// Pools lists the pools that run the version or launch from it, as namespace/name. WantedBy
	// lists the pools that should.
	Pools    []string `json:"pools"`
	WantedBy []string `json:"wantedBy"`
}

// LaunchConfigStatuses returns the status of each AWSLaunchConfig of the input, from the observed
// state and the plan. The condition RolledOut is True once each of its pools runs the version that
// it wants.
func LaunchConfigStatuses(in model.Input, p *Plan) []LaunchConfigStatus {
	out := []LaunchConfigStatus{}
	for _, s := range template.LaunchConfigsOf(in.Set) {
		out = append(out, status(s, in, p))
	}
	return out
}

// status returns the status of a launch configuration that pools share.
func status(s *template.Shared, in model.Input, p *Plan) LaunchConfigStatus {
	out := LaunchConfigStatus{
		Name: s.Config.Key.Name, Namespace: s.Config.Key.Namespace, Cluster: s.Users[0].ClusterKey.Name, Target: in.Policy.Target, Pools: s.Pools(),
		Versions: []SharedVersion{},
	}
	if s.Config.Source.Kind == "AWSLaunchConfigTemplate" {
		out.Template = s.Config.Source.Name
	}
	have, found := in.State.Templates[s.Users[0].LaunchTemplate.Name]
	ready := Condition{Type: "Ready", Status: "False", Severity: "Info", Reason: "LaunchTemplatePending"}
	failure := failure(s, p)
	making, waiting := false, false
	for i := range p.Steps {
		st := &p.Steps[i]
		if st.LaunchConfig == s.Key() {
			making = making || st.About().Makes != ""
			waiting = true
		}
		waiting = waiting || slices.Contains(out.Pools, st.Pool)
	}
	switch {
	case failure != nil:
		ready.Severity, ready.Reason, ready.Message = "Error", failure.Code, failure.Located()
	case found && !making:
		out.Ready = true
		ready = Condition{Type: "Ready", Status: "True"}
	}
	if found && (failure == nil || have.Tags[observed.TagLaunchConfig] == s.Key()) {
		out.LaunchTemplateID, out.LatestVersion, out.DefaultVersion = have.ID, have.LatestVersion, have.DefaultVersion
		out.Versions = versions(s, in, p, have)
	}
	rolled := Condition{Type: "RolledOut", Status: "True"}
	if !out.Ready || waiting || !out.upToDate() {
		rolled = Condition{Type: "RolledOut", Status: "False", Severity: "Info", Reason: "PoolsPending"}
	}
	out.Conditions = []Condition{ready, rolled}
	return out
}

// versions returns the versions of t with the pools that run them and the pools that want them.
func versions(s *template.Shared, in model.Input, p *Plan, t observed.Template) []SharedVersion {
	byNumber := map[int64]*SharedVersion{}
	at := func(n int64) *SharedVersion {
		if byNumber[n] == nil {
			byNumber[n] = &SharedVersion{Version: n, Default: n == t.DefaultVersion, Pools: []string{}, WantedBy: []string{}}
		}
		return byNumber[n]
	}
	for _, u := range s.Users {
		for _, n := range sharedNumbers(in, u, t) {
			at(n).Pools = append(at(n).Pools, u.Key.String())
		}
		if known := p.pools.Of(u.Key); known != nil && known.SharedVersion != 0 {
			n := known.SharedVersion
			at(n).WantedBy = append(at(n).WantedBy, u.Key.String())
		}
	}
	out := []SharedVersion{}
	for _, n := range slices.Sorted(maps.Keys(byNumber)) {
		out = append(out, *byNumber[n])
	}
	return out
}

// sharedNumbers returns the versions of t that a pool's machines run or will launch with,
// ascending.
func sharedNumbers(in model.Input, pool *intent.Pool, t observed.Template) []int64 {
	var refs []observed.TemplateRef
	if pool.Group != nil {
		g := in.State.Groups[pool.Group.Name]
		refs = append(refs, g.Template)
		for _, i := range g.Instances {
			if !i.Leaving() {
				refs = append(refs, i.Template)
			}
		}
	} else {
		for _, n := range in.NodegroupsOf(pool) {
			refs = append(refs, n.Template)
		}
	}
	var out []int64
	for _, r := range refs {
		if n := model.VersionOf(t, r); n != 0 && (r.ID != "" || r.Name != "") {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// upToDate reports whether each pool runs the version that it wants and no other.
func (s LaunchConfigStatus) upToDate() bool {
	runs := 0
	for _, v := range s.Versions {
		if !slices.Equal(v.Pools, v.WantedBy) {
			return false
		}
		runs += len(v.Pools)
	}
	return runs == len(s.Pools)
}

// failure returns the error that keeps the template from Git's state, as its pools report it.
func failure(s *template.Shared, p *Plan) *diag.Diagnostic {
	for i := range p.Diagnostics {
		d := &p.Diagnostics[i]
		if d.Code != template.CodeConfigNotReady && d.Code != "contested-name" {
			continue
		}
		if slices.ContainsFunc(s.Users, func(u *intent.Pool) bool { return u.Infrastructure.String() == d.Object }) {
			return d
		}
	}
	return nil
}
