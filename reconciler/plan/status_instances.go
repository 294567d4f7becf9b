package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// InstanceCount is the number of instances of a pool that are alike.
type InstanceCount struct {
	// TemplateVersion is the number of the launch template version that they run, empty if AWS
	// names none.
	TemplateVersion string `json:"templateVersion,omitempty"`
	Zone            string `json:"zone"`
	Type            string `json:"type,omitempty"`
	// State and Health are AWS's values, such as InService and Healthy.
	State  string `json:"state"`
	Health string `json:"health,omitempty"`
	Count  int32  `json:"count"`
}

// VersionNote is a version of a pool's launch template that a pass has read.
type VersionNote struct {
	Number int64 `json:"number"`
	// Revision is the short hash of the commit for which weir made the version. Subject is the
	// commit's first line. Both are empty if weir did not make the version.
	Revision string `json:"revision,omitempty"`
	Subject  string `json:"subject,omitempty"`
	// Default reports whether it is the template's default version.
	Default bool `json:"default,omitempty"`
}

// bounds sets the minimum and the maximum number of instances of a pool.
func (s *PoolStatus) bounds(least, most int32) { s.MinReplicas, s.MaxReplicas = least, most }

// countAlike adds an instance to the count of instances like it. A pool has few different kinds, so
// it searches linearly.
func (s *PoolStatus) countAlike(i observed.Instance) {
	version := i.Template.Version
	if strings.HasPrefix(version, "$") {
		version = ""
	}
	for k := range s.Instances {
		c := &s.Instances[k]
		if c.TemplateVersion == version && c.Zone == i.Zone && c.Type == i.Type && c.State == i.LifecycleState && c.Health == i.Health {
			c.Count++
			return
		}
	}
	s.Instances = append(s.Instances, InstanceCount{
		TemplateVersion: version, Zone: i.Zone, Type: i.Type, State: i.LifecycleState, Health: i.Health, Count: 1,
	})
}

// sortAlike sorts the counts, so that their order does not depend on AWS's.
func (s *PoolStatus) sortAlike() {
	slices.SortFunc(s.Instances, func(x, y InstanceCount) int {
		return cmp.Or(cmp.Compare(x.Zone, y.Zone), cmp.Compare(x.TemplateVersion, y.TemplateVersion), cmp.Compare(x.Type, y.Type),
			cmp.Compare(x.State, y.State), cmp.Compare(x.Health, y.Health))
	})
}

// notes lists the versions of the pool's own template that weir has read, newest first.
func (s *PoolStatus) notes(in model.Input, pool *intent.Pool) {
	if pool.LaunchTemplate == nil || s.LaunchTemplateID == "" {
		return
	}
	t := in.State.Templates[pool.LaunchTemplate.Name]
	for n, v := range t.Versions {
		note := VersionNote{Number: n, Default: n == t.DefaultVersion}
		if _, ours := content.DescriptionHashes(v.Description); ours {
			_, rest, _ := strings.Cut(v.Description, " ")
			note.Revision, note.Subject, _ = strings.Cut(rest, " ")
		}
		s.TemplateVersions = append(s.TemplateVersions, note)
	}
	slices.SortFunc(s.TemplateVersions, func(x, y VersionNote) int { return cmp.Compare(y.Number, x.Number) })
}
