package plan

import (
	"slices"

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
	// Ready says that the launch template exists and has the version that Git
	// wants. Its pools wait for that.
	Ready      bool        `json:"ready"`
	Conditions []Condition `json:"conditions"`
	// Pools are the pools that use it, as namespace/name.
	Pools []string `json:"pools"`
}

// LaunchConfigStatuses says how each AWSLaunchConfig of the input stands, from
// what was observed and from the plan that was made of it. The condition RolledOut
// is True once all of its pools run the wanted version, and with it the default
// version has moved.
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
			switch st.Do.(type) {
			case CreateLaunchTemplate, CreateLaunchTemplateVersion:
				making = true
			}
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
	if found && (failure == nil || have.Tags[TagLaunchConfig] == s.key()) {
		out.LaunchTemplateID, out.LatestVersion, out.DefaultVersion = have.ID, have.LatestVersion, have.DefaultVersion
	}
	rolled := Condition{Type: "RolledOut", Status: "True"}
	if !out.Ready || waiting || s.unsettled(in) {
		rolled = Condition{Type: "RolledOut", Status: "False", Severity: "Info", Reason: "PoolsPending"}
	}
	out.Conditions = []Condition{ready, rolled}
	return out
}

// unsettled reports whether a pool has another version than the default one, to
// which the default moves last.
func (s *sharedTemplate) unsettled(in Input) bool {
	t := in.State.Templates[s.users[0].LaunchTemplate.Name]
	c := computation{in: in}
	return slices.ContainsFunc(s.users, func(p *intent.Pool) bool {
		refs := c.refsOf(p)
		return !slices.ContainsFunc(refs, func(r TemplateRef) bool { return r.ID != "" || r.Name != "" }) ||
			slices.ContainsFunc(refs, func(r TemplateRef) bool { return versionOf(t, r) != t.DefaultVersion })
	})
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
