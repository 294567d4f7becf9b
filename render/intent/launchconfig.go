package intent

import "slices"

// LaunchConfig is the AWSLaunchConfig whose launch template a pool shares with
// all pools of the target that name the same.
type LaunchConfig struct {
	// Key is its namespace and name: the value of the tag weir.dev/launch-config.
	// The name is that of the launch template too.
	Key Key `json:"key"`
	// Source is the AWSLaunchConfig itself, or the AWSLaunchConfigTemplate that it
	// is derived from.
	Source ObjectRef `json:"source"`
	// Options is the PoolOptions that names Source; without one its Kind is empty.
	Options ObjectRef `json:"options,omitzero"`
	// KeepVersions, FollowImages and PruneDisabled are Source's annotations
	// weir.dev/keep-versions, ami-policy and prune; see Pool.
	KeepVersions  int32 `json:"keepVersions,omitempty"`
	FollowImages  bool  `json:"followImages,omitempty"`
	PruneDisabled bool  `json:"pruneDisabled,omitempty"`
	// Remembered is Source's annotation weir.dev/image-family; see Pool.
	Remembered string `json:"-"`
}

// Launch template fields are below these paths of the kinds that have them.
var (
	inlineTemplate  = Path{"spec", "awsLaunchTemplate"}
	configSpec      = Path{"spec"}
	configTemplates = Path{"spec", "template", "spec"}
)

// Spec is the path of Source below which the fields of the launch template stand.
func (l *LaunchConfig) Spec() Path {
	if l.Source.Kind == "AWSLaunchConfigTemplate" {
		return configTemplates
	}
	return configSpec
}

// Field says where in Source the field stands that a pool with a launch template
// of its own has at p; ok is false where p is not below spec.awsLaunchTemplate.
func (l *LaunchConfig) Field(p Path) (field Path, ok bool) {
	n := len(inlineTemplate)
	if len(p) < n || !slices.Equal(p[:n], inlineTemplate) {
		return nil, false
	}
	return l.Spec().Join(p[n:]...), true
}
