package intent

import "slices"

// LaunchConfig is an AWSLaunchConfig. All pools of the target that name it share one launch template.
type LaunchConfig struct {
	// Key is its namespace and name: the value of the tag weir.dev/launch-config. The launch template has the
	// same name.
	Key Key `json:"key"`
	// Source is the AWSLaunchConfig itself, or the AWSLaunchConfigTemplate that it
	// is derived from.
	Source ObjectRef `json:"source"`
	// Options is the PoolOptions that names Source. Its Kind is empty if no PoolOptions does.
	Options ObjectRef `json:"options,omitzero"`
	// KeepVersions, FollowImages and PruneDisabled are Source's annotations
	// weir.dev/keep-versions, ami-policy and prune; see Pool.
	KeepVersions  int32 `json:"keepVersions,omitempty"`
	FollowImages  bool  `json:"followImages,omitempty"`
	PruneDisabled bool  `json:"pruneDisabled,omitempty"`
	// Remembered is Source's annotation weir.dev/image-family; see Pool.
	Remembered string `json:"-"`
}

// Paths of the launch template's fields in the kinds that have them.
var (
	inlineTemplate  = Path{"spec", "awsLaunchTemplate"}
	configSpec      = Path{"spec"}
	configTemplates = Path{"spec", "template", "spec"}
)

// Spec returns the path in Source that contains the fields of the launch template.
func (l *LaunchConfig) Spec() Path {
	if l.Source.Kind == "AWSLaunchConfigTemplate" {
		return configTemplates
	}
	return configSpec
}

// Field converts p, a field of a pool with its own launch template, to the same field in Source. ok is false
// if p is not below spec.awsLaunchTemplate.
func (l *LaunchConfig) Field(p Path) (field Path, ok bool) {
	n := len(inlineTemplate)
	if len(p) < n || !slices.Equal(p[:n], inlineTemplate) {
		return nil, false
	}
	return l.Spec().Join(p[n:]...), true
}
