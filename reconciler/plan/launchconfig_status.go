package plan

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// LaunchConfigStatus is the status of an AWSLaunchConfig: of one that is written,
// or that is derived from an AWSLaunchConfigTemplate.
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
	// Ready says that the launch template exists and has the versions that Git
	// wants. Its pools wait for that.
	Ready      bool        `json:"ready"`
	Conditions []Condition `json:"conditions"`
	// Pools are the pools that use it, as namespace/name.
	Pools []string `json:"pools"`
	// Versions are those that pools run or that Git wants for them, ascending.
	Versions []SharedVersion `json:"versions"`
}

// SharedVersion is a version of a launch template that pools share.
type SharedVersion struct {
	Version int64 `json:"version"`
	Default bool  `json:"default"`
	// Pools run it or launch from it, and WantedBy should, as namespace/name.
	Pools    []string `json:"pools"`
	WantedBy []string `json:"wantedBy"`
}

// LaunchConfigStatuses says how each AWSLaunchConfig of the input stands, from
// what was observed and from the plan that was made of it. The condition RolledOut
// is True once each of its pools runs the version that it wants.
func LaunchConfigStatuses(in Input, p *Plan) []LaunchConfigStatus {
	out := []LaunchConfigStatus{}
	for _, s := range launchConfigsOf(in.Set) {
		out = append(out, s.status(in, p))
	}
	return out
}

func (s *sharedTemplate) status(in Input, p *Plan) LaunchConfigStatus {
	out := LaunchConfigStatus{
		Name: s.config.Key.Name, Namespace: s.config.Key.Namespace, Cluster: s.users[0].ClusterKey.Name, Target: in.Policy.Target, Pools: s.pools(),
		Versions: []SharedVersion{},
	}
	if s.config.Source.Kind == "AWSLaunchConfigTemplate" {
		out.Template = s.config.Source.Name
	}
	have, found := in.State.Templates[s.users[0].LaunchTemplate.Name]
	ready := Condition{Type: "Ready", Status: "False", Severity: "Info", Reason: "LaunchTemplatePending"}
	failure := s.failure(p)
	making, waiting := false, false
	for i := range p.Steps {
		st := &p.Steps[i]
		if st.LaunchConfig == s.key() {
			making = making || st.About().Makes != ""
			waiting = true
		}
		waiting = waiting || slices.Contains(out.Pools, st.Pool)
	}
	switch {
	case failure != nil:
		ready.Severity, ready.Reason, ready.Message = "Error", failure.Code, failure.Summary
	case found && !making:
		out.Ready = true
		ready = Condition{Type: "Ready", Status: "True"}
	}
	if found && (failure == nil || have.Tags[observed.TagLaunchConfig] == s.key()) {
		out.LaunchTemplateID, out.LatestVersion, out.DefaultVersion = have.ID, have.LatestVersion, have.DefaultVersion
		out.Versions = s.versions(in, p, have)
	}
	rolled := Condition{Type: "RolledOut", Status: "True"}
	if !out.Ready || waiting || !out.settled() {
		rolled = Condition{Type: "RolledOut", Status: "False", Severity: "Info", Reason: "PoolsPending"}
	}
	out.Conditions = []Condition{ready, rolled}
	return out
}

// versions says which pools run which version of t, and which want it.
func (s *sharedTemplate) versions(in Input, p *Plan, t observed.Template) []SharedVersion {
	byNumber := map[int64]*SharedVersion{}
	at := func(n int64) *SharedVersion {
		if byNumber[n] == nil {
			byNumber[n] = &SharedVersion{Version: n, Default: n == t.DefaultVersion, Pools: []string{}, WantedBy: []string{}}
		}
		return byNumber[n]
	}
	for _, u := range s.users {
		for _, n := range sharedNumbers(in, u, t) {
			at(n).Pools = append(at(n).Pools, u.Key.String())
		}
		if n := p.wants[u.Key]; n != 0 {
			at(n).WantedBy = append(at(n).WantedBy, u.Key.String())
		}
	}
	out := []SharedVersion{}
	for _, n := range slices.Sorted(maps.Keys(byNumber)) {
		out = append(out, *byNumber[n])
	}
	return out
}

// sharedNumbers are the versions of t that a pool's machines run, or that its next
// ones will, ascending.
func sharedNumbers(in Input, pool *intent.Pool, t observed.Template) []int64 {
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
		for _, n := range in.nodegroupsOf(pool) {
			refs = append(refs, n.Template)
		}
	}
	var out []int64
	for _, r := range refs {
		if n := versionOf(t, r); n != 0 && (r.ID != "" || r.Name != "") {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// settled reports whether each pool runs the version that it wants and no other.
func (s LaunchConfigStatus) settled() bool {
	runs := 0
	for _, v := range s.Versions {
		if !slices.Equal(v.Pools, v.WantedBy) {
			return false
		}
		runs += len(v.Pools)
	}
	return runs == len(s.Pools)
}

// failure is the error that keeps the template from being what Git says, as its
// pools are told of it.
func (s *sharedTemplate) failure(p *Plan) *diag.Diagnostic {
	for i := range p.Diagnostics {
		d := &p.Diagnostics[i]
		if d.Code != codeConfigNotReady && d.Code != "contested-name" {
			continue
		}
		if slices.ContainsFunc(s.users, func(u *intent.Pool) bool { return u.Infrastructure.String() == d.Object }) {
			return d
		}
	}
	return nil
}
