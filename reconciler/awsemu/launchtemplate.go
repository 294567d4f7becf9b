package awsemu

import (
	"sort"
	"strconv"
	"strings"
	"time"
)

// launchTemplate is an EC2 launch template with its versions.
type launchTemplate struct {
	ID        string
	Name      string
	Created   time.Time
	CreatedBy string // ARN
	Default   int64  // version number
	Next      int64  // the number that the next version gets; numbers are not used again
	Tags      tags
	Versions  []*ltVersion // ascending
}

// ltVersion is one immutable version.
type ltVersion struct {
	Number      int64
	Description string
	Created     time.Time
	CreatedBy   string
	Data        ltData
}

// latest is the highest version that exists. There always is one, since the
// default version cannot be deleted.
func (t *launchTemplate) latest() int64 { return t.Versions[len(t.Versions)-1].Number }

// version returns a version by number, nil where there is none.
func (t *launchTemplate) version(n int64) *ltVersion {
	i := sort.Search(len(t.Versions), func(i int) bool { return t.Versions[i].Number >= n })
	if i == len(t.Versions) || t.Versions[i].Number != n {
		return nil
	}
	return t.Versions[i]
}

// pick returns the version that a text names: a number, $Latest, $Default, or ""
// for the default version; nil where there is none.
func (t *launchTemplate) pick(text string) *ltVersion {
	switch text {
	case "", "$Default":
		return t.version(t.Default)
	case "$Latest":
		return t.version(t.latest())
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return t.version(n)
}

// template finds a launch template by id or name, nil where there is none.
func (r *region) template(id, name string) *launchTemplate {
	if id == "" {
		id = r.EC2.TemplateNames[name]
	}
	return r.EC2.LaunchTemplates.get(id)
}

// ltResolve finds a launch template by id or name, and one of its versions as
// [launchTemplate.pick] does. The fault is EC2's.
func (r *region) ltResolve(id, name, version string) (*launchTemplate, *ltVersion, *apiError) {
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

func templateNotFound(id, name string) *apiError {
	switch {
	case id == "":
		return fail("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name %s, does not exist.", name)
	case !validTemplateID(id):
		return fail("InvalidLaunchTemplateId.Malformed", "The specified launch template ID is malformed: %s", id)
	}
	return fail("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
}

func versionNotFound(t *launchTemplate, version string) *apiError {
	return fail("InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version %s for the launch template with ID %s.", version, t.ID)
}

func validTemplateID(id string) bool { return validID(id, "lt-") }

// validID says whether an id has AWS's shape: the prefix and 8 or 17 hexadecimal
// digits.
func validID(id, prefix string) bool {
	digits, ok := strings.CutPrefix(id, prefix)
	return ok && (len(digits) == 17 || len(digits) == 8) && strings.Trim(digits, "0123456789abcdef") == ""
}
