package intent

// FamilyLookup is the value of weir.dev/image-family for the family that the manifests look up if
// no image is pinned.
const FamilyLookup = "lookup"

// Newest returns the lookup of the newest image in the family of the pool's image, and the place in
// Git at which the image is pinned, or would be. The lookup is zero if weir has nothing to propose:
// the pool follows images by itself, brings its own launch template, or has an image that somebody
// pinned by hand, without its family.
//
// has is the Kubernetes version of its nodegroup, for a pool that names none.
func (p *Pool) Newest(has string) (ask Lookup, at Pin) {
	t := p.LaunchTemplate
	switch {
	case p.ForeignTemplate != nil || p.FollowImages || p.LaunchConfig != nil && p.LaunchConfig.FollowImages:
		return ask, at
	case t != nil && t.Image.Kind != "":
		at.Object, at.Field, at.Written = p.Infrastructure, Path{"spec", "awsLaunchTemplate", "ami", "id"}, t.Image.Kind == ImageByID
		if l := p.LaunchConfig; l != nil {
			at.Object = l.Source
			at.Field, _ = l.Field(at.Field)
		}
		switch {
		case at.Written:
			at.Has, ask = t.Image.Name, p.Family
		default:
			ask, at.Remember = t.Image, FamilyLookup
		}
		if t.Image.Kind == ImageByParameter {
			at.Remember = ParameterPrefix + t.Image.Name
		}
		return ask, at
	case p.Nodegroup != nil && p.Nodegroup.AMIType != "":
		n := p.Nodegroup
		at = Pin{Object: p.Infrastructure, Field: Path{"spec", "amiVersion"}, Written: n.ReleaseVersion != "", Has: n.ReleaseVersion}
		if at.Written && p.Remembered != FamilyLookup {
			return ask, at
		}
		if !at.Written {
			at.Remember = FamilyLookup
		}
		ask = Lookup{Kind: NodegroupRelease, Name: n.AMIType, Version: n.Version}
		if ask.Version == "" {
			ask.Version = has
		}
	}
	return ask, at
}

// ParameterPrefix begins the names of parameters of AWS Systems Manager where the id of an
// image is expected, as in EC2.
const ParameterPrefix = "resolve:ssm:"

// Pin is the place of an image in Git.
type Pin struct {
	// Object has Field, whose value is the id of an image, or a release of a nodegroup's.
	Object ObjectRef
	Field  Path
	// Written says that it is pinned, to Has.
	Written bool
	Has     string
	// Remember is the value to write into weir.dev/image-family next to it; empty if it is already
	// there.
	Remember string
}
