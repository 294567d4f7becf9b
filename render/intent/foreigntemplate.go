package intent

// ForeignTemplate is an EC2 launch template that the pool's manifests refer to, and whose versions another
// program or a person creates. weir reads it, and never changes or deletes it.
type ForeignTemplate struct {
	// Lookup asks for the template and the number of the wanted version.
	Lookup Lookup `json:"lookup"`
	// NameField is the field of the pool's infrastructure object that names the template, and VersionField
	// the field with its version. VersionField is nil if the manifest has no version, which means the newest.
	NameField    Path `json:"-"`
	VersionField Path `json:"-"`
}

// Aliases of launch template versions in the EC2 API.
const (
	LatestVersion  = "$Latest"
	DefaultVersion = "$Default"
)

// Field returns the field that selects the version.
func (f *ForeignTemplate) Field() Path {
	if f.VersionField != nil {
		return f.VersionField
	}
	return f.NameField
}
