package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

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

// notes lists the versions of the pool's own template that weir has read, newest first.
func (s *PoolStatus) notes(in model.Input, pool *intent.Pool) {
	if pool.LaunchTemplate == nil || s.LaunchTemplateID == "" {
		return
	}
	t := in.State.Templates[pool.LaunchTemplate.Name]
	for n, v := range t.Versions {
		note := VersionNote{Number: n, Default: n == t.DefaultVersion}
		note.Revision, note.Subject = CommitOf(v.Description)
		s.TemplateVersions = append(s.TemplateVersions, note)
	}
	slices.SortFunc(s.TemplateVersions, func(x, y VersionNote) int { return cmp.Compare(y.Number, x.Number) })
}

// CommitOf returns the commit for which weir made a version, from the version's description. Both are
// empty if weir did not make the version.
func CommitOf(description string) (revision, subject string) {
	if _, ours := content.DescriptionHashes(description); !ours {
		return "", ""
	}
	_, rest, _ := strings.Cut(description, " ")
	revision, subject, _ = strings.Cut(rest, " ")
	return revision, subject
}
