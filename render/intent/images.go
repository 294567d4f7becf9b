package intent

// FamilyLookup is the value of weir.dev/image-family if the family is the image that weir would look up if no
// image were pinned.
const FamilyLookup = "lookup"

// Newest returns the lookup of the newest image in the family of the pool's image. It also returns the field
// in Git that pins the image or could pin it. The lookup is zero if weir has nothing to propose: the pool
// follows images by itself, has a foreign launch template, or has a manually pinned image of unknown family.
//
// The parameter has is the Kubernetes version of the existing nodegroup. Newest uses it if the pool has no
// version.
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

// ParameterPrefix is the prefix that marks a parameter of AWS Systems Manager in place of an image id, as in
// EC2.
const ParameterPrefix = "resolve:ssm:"

// Pin is the field in Git that pins an image, or could pin it.
type Pin struct {
	// Object has the field Field. The field's value is an image id, or the release of a nodegroup's image.
	Object ObjectRef
	Field  Path
	// Written is true if the field exists. Its value is then Has.
	Written bool
	Has     string
	// Remember is the value to write into weir.dev/image-family together with the pin. It is empty if the
	// manifest already has it.
	Remember string
}
