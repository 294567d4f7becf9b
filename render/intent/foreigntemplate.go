package intent

// ForeignTemplate is an EC2 launch template that a pool brings along: another program
// or person makes its versions. weir reads it, and never changes or deletes it.
type ForeignTemplate struct {
	// Lookup requests the template and the number of the wanted version.
	Lookup Lookup `json:"lookup"`
	// NameField is the field of the pool's infrastructure object that names the template,
	// VersionField the field with its version. VersionField is nil if the version is not written,
	// which means the newest.
	NameField    Path `json:"-"`
	VersionField Path `json:"-"`
}

// Aliases of a launch template's versions, as AWS writes them.
const (
	LatestVersion  = "$Latest"
	DefaultVersion = "$Default"
)

// Field is the field that decides which version is wanted.
func (f *ForeignTemplate) Field() Path {
	if f.VersionField != nil {
		return f.VersionField
	}
	return f.NameField
}
