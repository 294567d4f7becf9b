package ec2

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// templateRef names a launch template in a request, by id or by name.
type templateRef struct {
	LaunchTemplateID, LaunchTemplateName string
}

// Check refuses a reference that does not have exactly one of the two.
func (ref *templateRef) Check() error {
	switch {
	case ref.LaunchTemplateID == "" && ref.LaunchTemplateName == "":
		return wire.Fail("MissingParameter", "Either LaunchTemplateId or LaunchTemplateName must be specified")
	case ref.LaunchTemplateID != "" && ref.LaunchTemplateName != "":
		return wire.Fail("InvalidParameterCombination", "Only one of LaunchTemplateId and LaunchTemplateName may be specified")
	}
	return nil
}

func (ref templateRef) find(r *Region) (*LaunchTemplate, error) {
	t := r.template(ref.LaunchTemplateID, ref.LaunchTemplateName)
	if t == nil {
		return nil, templateNotFound(ref.LaunchTemplateID, ref.LaunchTemplateName)
	}
	return t, nil
}

// checkClientToken accepts up to 128 printable ASCII characters.
func checkClientToken(token string) error {
	if len(token) > 128 || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return badValue("ClientToken", token, "A client token has at most 128 ASCII characters.")
	}
	return nil
}

func checkDescription(text string) error {
	if len(utf16.Encode([]rune(text))) > 255 {
		return badValue("VersionDescription", text, "A version description has at most 255 characters.")
	}
	return nil
}

// tagSpecifications holds the tags for a new resource.
type tagSpecifications struct {
	TagSpecifications []struct {
		ResourceType string
		Tags         []world.Tag
	}

	tags world.Tags
}

// read checks the tags, which must be for a resource of one type, and joins them.
func (in *tagSpecifications) read(resourceType string) error {
	in.tags = world.Tags{}
	for _, spec := range in.TagSpecifications {
		switch spec.ResourceType {
		case resourceType:
		case "":
			return wire.Fail("MissingParameter", "The request must contain the parameter TagSpecification.ResourceType")
		default:
			return wire.Fail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", spec.ResourceType)
		}
		for _, t := range spec.Tags {
			if err := checkTag(t); err != nil {
				return err
			}
			if _, twice := in.tags.Get(t.Key); twice {
				return wire.Fail("InvalidParameterValue", "Duplicate tag key '%s' specified.", t.Key)
			}
			in.tags.Set(t.Key, t.Value)
		}
	}
	return nil
}

type createTemplateInput struct {
	LaunchTemplateName, ClientToken, VersionDescription string
	LaunchTemplateData                                  wire.Data
	tagSpecifications
}

func (in *createTemplateInput) Check() error {
	if n := in.LaunchTemplateName; len(n) < 3 || len(n) > 125 || !wire.ConsistsOf(n, wire.Alphanumeric+"().-/_") {
		return wire.Fail("InvalidLaunchTemplateName.MalformedException", "The specified launch template name is invalid. A launch template name must be between 3 and 125 characters, and may contain letters, numbers, and the following characters: - ( ) . / _")
	}
	return cmp.Or(checkClientToken(in.ClientToken), checkDescription(in.VersionDescription), in.read("launch-template"))
}

func createLaunchTemplate(rq *request, in createTemplateInput) error {
	r := rq.Region
	return rq.Idempotent(in.ClientToken, r.LaunchTemplates.Has, func() (string, error) {
		if r.TemplateNames[in.LaunchTemplateName] != "" {
			return "", wire.Fail("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
		if err := checkTemplateData(in.LaunchTemplateData); err != nil {
			return "", err
		}
		if r.LaunchTemplates.Len() >= r.Quota("launch-templates") {
			return "", wire.Fail("MaxTemplateLimitExceeded", "You've reached the limit on the number of launch templates you can create: %d", r.Quota("launch-templates"))
		}
		if in.tags.UserCount() > r.Quota("tags") {
			return "", tagLimit()
		}
		t := r.AddTemplate(in.LaunchTemplateName, rq.Caller, in.LaunchTemplateData, in.VersionDescription, in.tags)
		writeTemplate(&rq.XML, "launchTemplate", t)
		writeWarning(rq, in.LaunchTemplateData)
		return t.ID, nil
	})
}

type createVersionInput struct {
	templateRef
	ClientToken, VersionDescription, SourceVersion string
	ResolveAlias                                   bool
	LaunchTemplateData                             wire.Data
}

func (in *createVersionInput) Check() error {
	return cmp.Or(in.templateRef.Check(), checkClientToken(in.ClientToken), checkDescription(in.VersionDescription))
}

func createLaunchTemplateVersion(rq *request, in createVersionInput) error {
	r := rq.Region
	return rq.Idempotent(in.ClientToken, r.LaunchTemplates.Has, func() (string, error) {
		t, err := in.find(r)
		if err != nil {
			return "", err
		}
		data := in.LaunchTemplateData
		if in.SourceVersion != "" {
			source := t.pick(in.SourceVersion)
			if source == nil {
				return "", versionNotFound(t, in.SourceVersion)
			}
			data = source.Data.MergedWith(in.LaunchTemplateData)
		}
		if err := checkTemplateData(data); err != nil {
			return "", err
		}
		if len(t.Versions) >= r.Quota("launch-template-versions") {
			return "", wire.Fail("MaxTemplateVersionLimitExceeded", "You've reached the limit on the number of versions of a launch template: %d", r.Quota("launch-template-versions"))
		}
		v := r.AddVersion(t, rq.Caller, data, in.VersionDescription)
		writeVersion(rq, "launchTemplateVersion", t, v, in.ResolveAlias)
		writeWarning(rq, data)
		return t.ID, nil
	})
}

// AddTemplate stores a new launch template with version 1.
func (r *Region) AddTemplate(name, createdBy string, data wire.Data, description string, ts world.Tags) *LaunchTemplate {
	t := &LaunchTemplate{
		ID: r.NewID("lt"), Name: name, Created: r.Now(), CreatedBy: createdBy, Default: 1, Next: 1, Tags: ts,
	}
	r.LaunchTemplates.Put(t.ID, t)
	r.TemplateNames[name] = t.ID
	r.AddVersion(t, createdBy, data, description)
	return t
}

// AddVersion adds a version to a launch template. The caller must not change its body afterwards.
func (r *Region) AddVersion(t *LaunchTemplate, createdBy string, data wire.Data, description string) *Version {
	v := &Version{Number: t.Next, Description: description, Created: r.Now(), CreatedBy: createdBy, Data: data}
	t.Next++
	t.Versions = append(t.Versions, v)
	return v
}

// RemoveTemplate deletes a launch template with its versions.
func (r *Region) RemoveTemplate(t *LaunchTemplate) {
	r.LaunchTemplates.Remove(t.ID)
	delete(r.TemplateNames, t.Name)
}

type modifyTemplateInput struct {
	templateRef
	ClientToken    string
	DefaultVersion string
}

func (in *modifyTemplateInput) Check() error {
	if in.DefaultVersion == "" {
		return wire.Fail("MissingParameter", "The request must contain the parameter SetDefaultVersion")
	}
	return cmp.Or(in.templateRef.Check(), checkClientToken(in.ClientToken))
}

func modifyLaunchTemplate(rq *request, in modifyTemplateInput) error {
	r := rq.Region
	return rq.Idempotent(in.ClientToken, r.LaunchTemplates.Has, func() (string, error) {
		t, err := in.find(r)
		if err != nil {
			return "", err
		}
		n, err := strconv.ParseInt(in.DefaultVersion, 10, 64)
		if err != nil || t.Version(n) == nil {
			return "", versionNotFound(t, in.DefaultVersion)
		}
		t.Default = n
		writeTemplate(&rq.XML, "launchTemplate", t)
		return t.ID, nil
	})
}

func deleteLaunchTemplate(rq *request, ref templateRef) error {
	t, err := ref.find(rq.Region)
	if err != nil {
		return err
	}
	rq.Region.RemoveTemplate(t)
	writeTemplate(&rq.XML, "launchTemplate", t)
	return nil
}

type deleteVersionsInput struct {
	templateRef
	Versions []string
}

func (in *deleteVersionsInput) Check() error {
	if len(in.Versions) > 200 {
		return badValue("LaunchTemplateVersion", strconv.Itoa(len(in.Versions)), "At most 200 versions can be deleted in one request.")
	}
	return in.templateRef.Check()
}

// versionResult is the result of the deletion of one version.
type versionResult struct {
	number        int64
	code, message string
}

// deleteLaunchTemplateVersions answers like EC2 even if it deletes nothing: with status 200 and an error for
// each version.
func deleteLaunchTemplateVersions(rq *request, in deleteVersionsInput) error {
	t := rq.Region.template(in.LaunchTemplateID, in.LaunchTemplateName)
	var done, refused []versionResult
	for _, text := range in.Versions {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return wire.Fail("InvalidParameterValue", "Value (%s) for parameter versions is invalid. Expected a version number.", text)
		}
		result := removeVersion(in.templateRef, t, n)
		if result.code == "" {
			done = append(done, result)
		} else {
			refused = append(refused, result)
		}
	}
	id, name := in.LaunchTemplateID, in.LaunchTemplateName
	if t != nil {
		id, name = t.ID, t.Name
	}
	writeVersionResults(&rq.XML, "successfullyDeletedLaunchTemplateVersionSet", id, name, done)
	writeVersionResults(&rq.XML, "unsuccessfullyDeletedLaunchTemplateVersionSet", id, name, refused)
	return nil
}

func removeVersion(ref templateRef, t *LaunchTemplate, n int64) versionResult {
	switch {
	case t == nil && ref.LaunchTemplateID == "":
		return versionResult{n, "launchTemplateNameDoesNotExist", "The specified launch template, with template name " + ref.LaunchTemplateName + ", does not exist."}
	case t == nil && !validTemplateID(ref.LaunchTemplateID):
		return versionResult{n, "launchTemplateIdMalformed", "The specified launch template ID is malformed."}
	case t == nil:
		return versionResult{n, "launchTemplateIdDoesNotExist", "The specified launch template, with template ID " + ref.LaunchTemplateID + ", does not exist."}
	case t.Version(n) == nil:
		return versionResult{n, "launchTemplateVersionDoesNotExist", "Could not find launch template version " + wire.Decimal(n) + "."}
	case n == t.Default:
		return versionResult{n, "unexpectedError", "Cannot delete the default version of a launch template."}
	}
	kept := make([]*Version, 0, len(t.Versions)-1)
	for _, v := range t.Versions {
		if v.Number != n {
			kept = append(kept, v)
		}
	}
	t.Versions = kept
	return versionResult{number: n}
}

func writeVersionResults(w *wire.XML, list, id, name string, results []versionResult) {
	w.Open(list)
	for _, res := range results {
		w.Open("item")
		w.Optional("launchTemplateId", id)
		w.Optional("launchTemplateName", name)
		w.Integer("versionNumber", res.number)
		if res.code != "" {
			w.Open("responseError")
			w.Text("code", res.code)
			w.Text("message", res.message)
			w.Close("responseError")
		}
		w.Close("item")
	}
	w.Close(list)
}
