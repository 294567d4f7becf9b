package ec2

import (
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// LaunchTemplate is an EC2 launch template with its versions.
type LaunchTemplate struct {
	ID        string
	Name      string
	Created   time.Time
	CreatedBy string // ARN
	Default   int64  // version number
	Next      int64  // the number of the next version; numbers are not reused
	Tags      world.Tags
	Versions  []*Version // ascending
}

// Version is one immutable version of a launch template.
type Version struct {
	Number      int64
	Description string
	Created     time.Time
	CreatedBy   string
	Data        wire.Data
}

// latest returns the highest existing version. At least one exists, because the default version cannot be
// deleted.
func (t *LaunchTemplate) latest() int64 { return t.Versions[len(t.Versions)-1].Number }

// Version returns a version by number, or nil.
func (t *LaunchTemplate) Version(n int64) *Version {
	i := sort.Search(len(t.Versions), func(i int) bool { return t.Versions[i].Number >= n })
	if i == len(t.Versions) || t.Versions[i].Number != n {
		return nil
	}
	return t.Versions[i]
}

// pick returns the version for a number, $Latest or $Default. An empty text means the default version. It
// returns nil if the version does not exist.
func (t *LaunchTemplate) pick(text string) *Version {
	switch text {
	case "", "$Default":
		return t.Version(t.Default)
	case "$Latest":
		return t.Version(t.latest())
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return t.Version(n)
}

// template finds a launch template by id or name, or returns nil.
func (r *Region) template(id, name string) *LaunchTemplate {
	if id == "" {
		id = r.TemplateNames[name]
	}
	return r.LaunchTemplates.Get(id)
}

// Resolve finds a launch template by id or name, and one of its versions like [LaunchTemplate.pick]. It
// returns EC2's errors.
func (r *Region) Resolve(id, name, version string) (*LaunchTemplate, *Version, *wire.Error) {
	t := r.template(id, name)
	if t == nil {
		return nil, nil, templateNotFound(id, name)
	}
	v := t.pick(version)
	if v == nil {
		return nil, nil, versionNotFound(t, version)
	}
	return t, v, nil
}

func templateNotFound(id, name string) *wire.Error {
	switch {
	case id == "":
		return wire.Fail("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", name)
	case !validTemplateID(id):
		return wire.Fail("InvalidLaunchTemplateId.Malformed", "The specified launch template ID is malformed: %s", id)
	}
	return wire.Fail("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
}

func versionNotFound(t *LaunchTemplate, version string) *wire.Error {
	return wire.Fail("InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version %s for the launch template with ID %s.", version, t.ID)
}

func validTemplateID(id string) bool { return validID(id, "lt-") }

// validID reports whether an id has AWS's format: the prefix and 8 or 17 hexadecimal digits.
func validID(id, prefix string) bool {
	digits, ok := strings.CutPrefix(id, prefix)
	return ok && (len(digits) == 17 || len(digits) == 8) && strings.Trim(digits, "0123456789abcdef") == ""
}

// firstInterface returns the primary network interface, or empty data.
func firstInterface(d wire.Data) wire.Data {
	if all := d.List("NetworkInterfaces"); len(all) > 0 {
		return all[0]
	}
	return nil
}

// TagsFor returns the tags in the data for resources of a type.
func TagsFor(d wire.Data, resourceType string) world.Tags {
	ts := world.Tags{}
	for _, spec := range d.List("TagSpecifications") {
		if spec.Text("ResourceType") != resourceType {
			continue
		}
		for _, t := range spec.List("Tags") {
			ts.Set(t.Text("Key"), t.Text("Value"))
		}
	}
	return ts
}
