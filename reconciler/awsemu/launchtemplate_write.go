package awsemu

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// templateRef names a launch template in a request: by id or by name.
type templateRef struct {
	id, name string
}

func parseTemplateRef(p *params) templateRef {
	ref := templateRef{id: p.text("LaunchTemplateId"), name: p.text("LaunchTemplateName")}
	switch {
	case ref.id == "" && ref.name == "":
		p.reject(fail("MissingParameter", "Either LaunchTemplateId or LaunchTemplateName must be specified"))
	case ref.id != "" && ref.name != "":
		p.reject(fail("InvalidParameterCombination", "Only one of LaunchTemplateId and LaunchTemplateName may be specified"))
	}
	return ref
}

func (ref templateRef) find(r *region) (*launchTemplate, error) {
	t := r.template(ref.id, ref.name)
	if t == nil {
		return nil, templateNotFound(ref.id, ref.name)
	}
	return t, nil
}

// parseClientToken reads a client token: up to 128 printable ASCII characters.
func parseClientToken(p *params) string {
	token := p.text("ClientToken")
	if len(token) > 128 || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		p.bad("ClientToken", token, "A client token has at most 128 ASCII characters.")
	}
	return token
}

func parseDescription(p *params) string {
	text := p.text("VersionDescription")
	if len(utf16.Encode([]rune(text))) > 255 {
		p.bad("VersionDescription", text, "A version description has at most 255 characters.")
	}
	return text
}

func parseTemplateData(p *params) ltData {
	return p.data("LaunchTemplateData")
}

// parseTagSpecifications reads the tags for a new resource of one type.
func parseTagSpecifications(p *params, resourceType string) tags {
	ts := tags{}
	for _, spec := range p.list("TagSpecification") {
		if kind := spec.required("ResourceType"); kind != resourceType && kind != "" {
			p.reject(fail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind))
		}
		for _, t := range spec.list("Tag") {
			key, value := t.text("Key"), t.text("Value")
			if fault := tagFault(key, value); fault != "" {
				p.reject(fail("InvalidParameterValue", "Value ( %s ) for parameter key is invalid. %s", key, fault))
			}
			if _, twice := ts.get(key); twice {
				p.reject(fail("InvalidParameterValue", "Duplicate tag key '%s' specified.", key))
			}
			ts.set(key, value)
		}
	}
	return ts
}

type createTemplateInput struct {
	name, token, description string
	data                     ltData
	tags                     tags
}

func parseCreateTemplate(p *params) createTemplateInput {
	in := createTemplateInput{
		name: p.text("LaunchTemplateName"), token: parseClientToken(p),
		description: parseDescription(p), data: parseTemplateData(p),
		tags: parseTagSpecifications(p, "launch-template"),
	}
	if len(in.name) < 3 || len(in.name) > 125 || !consistsOf(in.name, alphanumeric+"().-/_") {
		p.reject(fail("InvalidLaunchTemplateName.MalformedException", "The specified launch template name is invalid. A launch template name must be between 3 and 125 characters, and may contain letters, numbers, and the following characters: - ( ) . / _"))
	}
	return in
}

func createLaunchTemplate(rq *request, in createTemplateInput) error {
	r := rq.region
	return rq.idempotent(in.token, r.EC2.LaunchTemplates.has, func() (string, error) {
		if r.EC2.TemplateNames[in.name] != "" {
			return "", fail("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
		if err := checkTemplateData(in.data); err != nil {
			return "", err
		}
		if r.EC2.LaunchTemplates.len() >= r.quota("launch-templates") {
			return "", fail("MaxTemplateLimitExceeded", "You've reached the limit on the number of launch templates you can create: %d", r.quota("launch-templates"))
		}
		if in.tags.userCount() > r.quota("tags") {
			return "", tagLimit()
		}
		t := r.addTemplate(in.name, rq.callerARN(), in.data, in.description, in.tags)
		rq.xml.writeTemplate("launchTemplate", t)
		rq.writeWarning(in.data)
		return t.ID, nil
	})
}

type createVersionInput struct {
	ref                        templateRef
	token, description, source string
	resolve                    bool
	data                       ltData
}

func parseCreateVersion(p *params) createVersionInput {
	return createVersionInput{
		ref: parseTemplateRef(p), token: parseClientToken(p), description: parseDescription(p),
		source: p.text("SourceVersion"), resolve: p.boolean("ResolveAlias"), data: parseTemplateData(p),
	}
}

func createLaunchTemplateVersion(rq *request, in createVersionInput) error {
	r := rq.region
	return rq.idempotent(in.token, r.EC2.LaunchTemplates.has, func() (string, error) {
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
			data = source.Data.mergedWith(in.data)
		}
		if err := checkTemplateData(data); err != nil {
			return "", err
		}
		if len(t.Versions) >= r.quota("launch-template-versions") {
			return "", fail("MaxTemplateVersionLimitExceeded", "You've reached the limit on the number of versions of a launch template: %d", r.quota("launch-template-versions"))
		}
		v := r.addVersion(t, rq.callerARN(), data, in.description)
		rq.writeVersion("launchTemplateVersion", t, v, in.resolve)
		rq.writeWarning(data)
		return t.ID, nil
	})
}

// mergedWith is a new body: d's members, with those of over in their place.
func (d ltData) mergedWith(over ltData) ltData {
	out := ltData{}
	for name, v := range d {
		out[name] = v
	}
	for name, v := range over {
		out[name] = v
	}
	return out
}

// addTemplate stores a new launch template with version 1.
func (r *region) addTemplate(name, createdBy string, data ltData, description string, ts tags) *launchTemplate {
	t := &launchTemplate{
		ID: r.newID("lt"), Name: name, Created: r.now(), CreatedBy: createdBy, Default: 1, Next: 1, Tags: ts,
	}
	r.EC2.LaunchTemplates.put(t.ID, t)
	r.EC2.TemplateNames[name] = t.ID
	r.addVersion(t, createdBy, data, description)
	return t
}

// addVersion adds a version to a launch template. Its body must not change
// afterwards.
func (r *region) addVersion(t *launchTemplate, createdBy string, data ltData, description string) *ltVersion {
	v := &ltVersion{Number: t.Next, Description: description, Created: r.now(), CreatedBy: createdBy, Data: data}
	t.Next++
	t.Versions = append(t.Versions, v)
	return v
}

// removeTemplate deletes a launch template with its versions.
func (r *region) removeTemplate(t *launchTemplate) {
	r.EC2.LaunchTemplates.remove(t.ID)
	delete(r.EC2.TemplateNames, t.Name)
}

type modifyTemplateInput struct {
	ref            templateRef
	token, version string
}

func parseModifyTemplate(p *params) modifyTemplateInput {
	return modifyTemplateInput{ref: parseTemplateRef(p), token: parseClientToken(p), version: p.required("SetDefaultVersion")}
}

func modifyLaunchTemplate(rq *request, in modifyTemplateInput) error {
	r := rq.region
	return rq.idempotent(in.token, r.EC2.LaunchTemplates.has, func() (string, error) {
		t, err := in.ref.find(r)
		if err != nil {
			return "", err
		}
		n, err := strconv.ParseInt(in.version, 10, 64)
		if err != nil || t.version(n) == nil {
			return "", versionNotFound(t, in.version)
		}
		t.Default = n
		rq.xml.writeTemplate("launchTemplate", t)
		return t.ID, nil
	})
}

func deleteLaunchTemplate(rq *request, ref templateRef) error {
	t, err := ref.find(rq.region)
	if err != nil {
		return err
	}
	rq.region.removeTemplate(t)
	rq.xml.writeTemplate("launchTemplate", t)
	return nil
}

type deleteVersionsInput struct {
	ref      templateRef
	versions []string
}

func parseDeleteVersions(p *params) deleteVersionsInput {
	in := deleteVersionsInput{ref: parseTemplateRef(p), versions: p.strings("LaunchTemplateVersion")}
	if len(in.versions) > 200 {
		p.bad("LaunchTemplateVersion", decimal(int64(len(in.versions))), "At most 200 versions can be deleted in one request.")
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
	t := rq.region.template(in.ref.id, in.ref.name)
	var done, refused []versionResult
	for _, text := range in.versions {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fail("InvalidParameterValue", "Value (%s) for parameter versions is invalid. Expected a version number.", text)
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
	rq.xml.writeVersionResults("successfullyDeletedLaunchTemplateVersionSet", id, name, done)
	rq.xml.writeVersionResults("unsuccessfullyDeletedLaunchTemplateVersionSet", id, name, refused)
	return nil
}

func removeVersion(ref templateRef, t *launchTemplate, n int64) versionResult {
	switch {
	case t == nil && ref.id == "":
		return versionResult{n, "launchTemplateNameDoesNotExist", "The specified launch template, with template name " + ref.name + ", does not exist."}
	case t == nil && !validTemplateID(ref.id):
		return versionResult{n, "launchTemplateIdMalformed", "The specified launch template ID is malformed."}
	case t == nil:
		return versionResult{n, "launchTemplateIdDoesNotExist", "The specified launch template, with template ID " + ref.id + ", does not exist."}
	case t.version(n) == nil:
		return versionResult{n, "launchTemplateVersionDoesNotExist", "Could not find launch template version " + decimal(n) + "."}
	case n == t.Default:
		return versionResult{n, "unexpectedError", "Cannot delete the default version of a launch template."}
	}
	kept := make([]*ltVersion, 0, len(t.Versions)-1)
	for _, v := range t.Versions {
		if v.Number != n {
			kept = append(kept, v)
		}
	}
	t.Versions = kept
	return versionResult{number: n}
}

func (w *xmlWriter) writeVersionResults(list, id, name string, results []versionResult) {
	w.open(list)
	for _, res := range results {
		w.open("item")
		w.optional("launchTemplateId", id)
		w.optional("launchTemplateName", name)
		w.integer("versionNumber", res.number)
		if res.code != "" {
			w.open("responseError")
			w.text("code", res.code)
			w.text("message", res.message)
			w.close("responseError")
		}
		w.close("item")
	}
	w.close(list)
}
