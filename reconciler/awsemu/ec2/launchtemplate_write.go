package ec2

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// templateRef names a launch template in a request: by id or by name.
type templateRef struct {
	id, name string
}

func parseTemplateRef(p *wire.Params) templateRef {
	ref := templateRef{id: p.Text("LaunchTemplateId"), name: p.Text("LaunchTemplateName")}
	switch {
	case ref.id == "" && ref.name == "":
		p.Reject(wire.Fail("MissingParameter", "Either LaunchTemplateId or LaunchTemplateName must be specified"))
	case ref.id != "" && ref.name != "":
		p.Reject(wire.Fail("InvalidParameterCombination", "Only one of LaunchTemplateId and LaunchTemplateName may be specified"))
	}
	return ref
}

func (ref templateRef) find(r *Region) (*LaunchTemplate, error) {
	t := r.template(ref.id, ref.name)
	if t == nil {
		return nil, templateNotFound(ref.id, ref.name)
	}
	return t, nil
}

// parseClientToken reads a client token: up to 128 printable ASCII characters.
func parseClientToken(p *wire.Params) string {
	token := p.Text("ClientToken")
	if len(token) > 128 || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		p.Bad("ClientToken", token, "A client token has at most 128 ASCII characters.")
	}
	return token
}

func parseDescription(p *wire.Params) string {
	text := p.Text("VersionDescription")
	if len(utf16.Encode([]rune(text))) > 255 {
		p.Bad("VersionDescription", text, "A version description has at most 255 characters.")
	}
	return text
}

func parseTemplateData(p *wire.Params) wire.Data {
	return p.Data("LaunchTemplateData")
}

// parseTagSpecifications reads the tags for a new resource of one type.
func parseTagSpecifications(p *wire.Params, resourceType string) world.Tags {
	ts := world.Tags{}
	for _, spec := range p.List("TagSpecification") {
		if kind := spec.Required("ResourceType"); kind != resourceType && kind != "" {
			p.Reject(wire.Fail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind))
		}
		for _, t := range spec.List("Tag") {
			key, value := t.Text("Key"), t.Text("Value")
			if fault := world.TagFault(key, value); fault != "" {
				p.Reject(wire.Fail("InvalidParameterValue", "Value ( %s ) for parameter key is invalid. %s", key, fault))
			}
			if _, twice := ts.Get(key); twice {
				p.Reject(wire.Fail("InvalidParameterValue", "Duplicate tag key '%s' specified.", key))
			}
			ts.Set(key, value)
		}
	}
	return ts
}

type createTemplateInput struct {
	name, token, description string
	data                     wire.Data
	tags                     world.Tags
}

func parseCreateTemplate(p *wire.Params) createTemplateInput {
	in := createTemplateInput{
		name: p.Text("LaunchTemplateName"), token: parseClientToken(p),
		description: parseDescription(p), data: parseTemplateData(p),
		tags: parseTagSpecifications(p, "launch-template"),
	}
	if len(in.name) < 3 || len(in.name) > 125 || !wire.ConsistsOf(in.name, wire.Alphanumeric+"().-/_") {
		p.Reject(wire.Fail("InvalidLaunchTemplateName.MalformedException", "The specified launch template name is invalid. A launch template name must be between 3 and 125 characters, and may contain letters, numbers, and the following characters: - ( ) . / _"))
	}
	return in
}

func createLaunchTemplate(rq *request, in createTemplateInput) error {
	r := rq.Region
	return rq.Idempotent(in.token, r.LaunchTemplates.Has, func() (string, error) {
		if r.TemplateNames[in.name] != "" {
			return "", wire.Fail("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
		if err := checkTemplateData(in.data); err != nil {
			return "", err
		}
		if r.LaunchTemplates.Len() >= r.Quota("launch-templates") {
			return "", wire.Fail("MaxTemplateLimitExceeded", "You've reached the limit on the number of launch templates you can create: %d", r.Quota("launch-templates"))
		}
		if in.tags.UserCount() > r.Quota("tags") {
			return "", tagLimit()
		}
		t := r.AddTemplate(in.name, rq.Caller, in.data, in.description, in.tags)
		writeTemplate(&rq.XML, "launchTemplate", t)
		writeWarning(rq, in.data)
		return t.ID, nil
	})
}

type createVersionInput struct {
	ref                        templateRef
	token, description, source string
	resolve                    bool
	data                       wire.Data
}

func parseCreateVersion(p *wire.Params) createVersionInput {
	return createVersionInput{
		ref: parseTemplateRef(p), token: parseClientToken(p), description: parseDescription(p),
		source: p.Text("SourceVersion"), resolve: p.Boolean("ResolveAlias"), data: parseTemplateData(p),
	}
}

func createLaunchTemplateVersion(rq *request, in createVersionInput) error {
	r := rq.Region
	return rq.Idempotent(in.token, r.LaunchTemplates.Has, func() (string, error) {
		t, err := in.ref.find(r)
		if err != nil {
			return "", err
		}
		data := in.data
		if in.source != "" {
			source := t.pick(in.source)
			if source == nil {
				return "", versionNotFound(t, in.source)
			}
			data = source.Data.MergedWith(in.data)
		}
		if err := checkTemplateData(data); err != nil {
			return "", err
		}
		if len(t.Versions) >= r.Quota("launch-template-versions") {
			return "", wire.Fail("MaxTemplateVersionLimitExceeded", "You've reached the limit on the number of versions of a launch template: %d", r.Quota("launch-template-versions"))
		}
		v := r.AddVersion(t, rq.Caller, data, in.description)
		writeVersion(rq, "launchTemplateVersion", t, v, in.resolve)
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

// AddVersion adds a version to a launch template. Its body must not change
// afterwards.
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
	ref            templateRef
	token, version string
}

func parseModifyTemplate(p *wire.Params) modifyTemplateInput {
	return modifyTemplateInput{ref: parseTemplateRef(p), token: parseClientToken(p), version: p.Required("SetDefaultVersion")}
}

func modifyLaunchTemplate(rq *request, in modifyTemplateInput) error {
	r := rq.Region
	return rq.Idempotent(in.token, r.LaunchTemplates.Has, func() (string, error) {
		t, err := in.ref.find(r)
		if err != nil {
			return "", err
		}
		n, err := strconv.ParseInt(in.version, 10, 64)
		if err != nil || t.Version(n) == nil {
			return "", versionNotFound(t, in.version)
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
	ref      templateRef
	versions []string
}

func parseDeleteVersions(p *wire.Params) deleteVersionsInput {
	in := deleteVersionsInput{ref: parseTemplateRef(p), versions: p.Strings("LaunchTemplateVersion")}
	if len(in.versions) > 200 {
		p.Bad("LaunchTemplateVersion", wire.Decimal(int64(len(in.versions))), "At most 200 versions can be deleted in one request.")
	}
	return in
}

// versionResult is what became of one version that was to be deleted.
type versionResult struct {
	number        int64
	code, message string
}

// deleteLaunchTemplateVersions answers as EC2 does even where nothing could be
// deleted: with status 200 and a fault for each version.
func deleteLaunchTemplateVersions(rq *request, in deleteVersionsInput) error {
	t := rq.Region.template(in.ref.id, in.ref.name)
	var done, refused []versionResult
	for _, text := range in.versions {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return wire.Fail("InvalidParameterValue", "Value (%s) for parameter versions is invalid. Expected a version number.", text)
		}
		result := removeVersion(in.ref, t, n)
		if result.code == "" {
			done = append(done, result)
		} else {
			refused = append(refused, result)
		}
	}
	id, name := in.ref.id, in.ref.name
	if t != nil {
		id, name = t.ID, t.Name
	}
	writeVersionResults(&rq.XML, "successfullyDeletedLaunchTemplateVersionSet", id, name, done)
	writeVersionResults(&rq.XML, "unsuccessfullyDeletedLaunchTemplateVersionSet", id, name, refused)
	return nil
}

func removeVersion(ref templateRef, t *LaunchTemplate, n int64) versionResult {
	switch {
	case t == nil && ref.id == "":
		return versionResult{n, "launchTemplateNameDoesNotExist", "The specified launch template, with template name " + ref.name + ", does not exist."}
	case t == nil && !validTemplateID(ref.id):
		return versionResult{n, "launchTemplateIdMalformed", "The specified launch template ID is malformed."}
	case t == nil:
		return versionResult{n, "launchTemplateIdDoesNotExist", "The specified launch template, with template ID " + ref.id + ", does not exist."}
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
