package awsemu

import (
	"fmt"
	"strconv"
	"strings"
)

// callerARN is what createdBy shows.
func (rq *request) callerARN() string {
	prefix := "arn:" + partition(rq.region.Name)
	if key := rq.srv.state.Keys[rq.accessKey]; key != nil {
		return prefix + ":sts::" + key.Account + ":assumed-role/" + key.Role + "/" + key.Session
	}
	return prefix + ":iam::" + rq.region.Account + ":user/emulator"
}

func (w *xmlWriter) writeTemplate(element string, t *launchTemplate) {
	w.open(element)
	w.writeTemplateBody(t)
	w.close(element)
}

func (w *xmlWriter) writeTemplateBody(t *launchTemplate) {
	w.text("launchTemplateId", t.ID)
	w.text("launchTemplateName", t.Name)
	w.time("createTime", t.Created)
	w.text("createdBy", t.CreatedBy)
	w.integer("defaultVersionNumber", t.Default)
	w.integer("latestVersionNumber", t.latest())
	w.writeTags(t.Tags)
}

// writeVersion writes a version; resolve replaces a parameter reference by the
// image that it stands for.
func (rq *request) writeVersion(element string, t *launchTemplate, v *ltVersion, resolve bool) {
	w := &rq.xml
	w.open(element)
	w.text("launchTemplateId", t.ID)
	w.text("launchTemplateName", t.Name)
	w.integer("versionNumber", v.Number)
	w.optional("versionDescription", v.Description)
	w.time("createTime", v.Created)
	w.text("createdBy", v.CreatedBy)
	w.boolean("defaultVersion", v.Number == t.Default)
	data := v.Data
	if resolve && strings.HasPrefix(data.text("ImageId"), "resolve:ssm:") {
		if id, err := rq.region.resolveImage(data.text("ImageId")); err == nil {
			data = data.mergedWith(ltData{"ImageId": id})
		}
	}
	w.open("launchTemplateData")
	w.writeShape(data, rq.svc.Shapes["ResponseLaunchTemplateData"])
	w.close("launchTemplateData")
	w.close(element)
}

// writeWarning says what would stop an instance from being launched, without
// refusing the template, as EC2 does.
func (rq *request) writeWarning(data ltData) {
	var found []*apiError
	r := rq.region
	arch := ""
	if id := data.text("ImageId"); id != "" {
		resolved, err := r.resolveImage(id)
		switch im := r.EC2.Images.get(resolved); {
		case err != nil:
			found = append(found, err)
		case im == nil:
			found = append(found, fail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id))
		default:
			arch = im.Architecture
		}
	}
	if name := data.text("InstanceType"); name != "" {
		kind, known := instanceTypes()[name]
		switch {
		case !known:
			found = append(found, fail("InvalidParameterValue", "Invalid value '%s' for InstanceType.", name))
		case arch != "" && arch != kind.arch:
			found = append(found, fail("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI.", kind.arch, arch))
		}
	}
	for _, id := range append(data.texts("SecurityGroupIds"), data.firstInterface().texts("Groups")...) {
		if !r.EC2.SecurityGroups.has(id) {
			found = append(found, fail("InvalidGroup.NotFound", "The security group '%s' does not exist", id))
		}
	}
	if len(found) == 0 {
		return
	}
	w := &rq.xml
	w.open("warning")
	w.open("errorSet")
	for _, e := range found {
		w.open("item")
		w.text("code", e.Code)
		w.text("message", e.Message)
		w.close("item")
	}
	w.close("errorSet")
	w.close("warning")
}

type describeTemplatesInput struct {
	describe
	names []string
}

func parseDescribeTemplates(p *params) describeTemplatesInput {
	p.boolean("IncludeManagedResources") // the emulator has none that are hidden
	return describeTemplatesInput{
		describe: parseDescribe(p, "LaunchTemplateId", 1, 200, 200),
		names:    p.strings("LaunchTemplateName"),
	}
}

func templateAttributes() attributes[*launchTemplate] {
	return attributes[*launchTemplate]{
		"launch-template-name": one(func(t *launchTemplate) string { return t.Name }),
		"create-time":          one(func(t *launchTemplate) string { return t.Created.Format(xmlTime) }),
	}
}

func describeLaunchTemplates(rq *request, in describeTemplatesInput) error {
	r := rq.region
	for _, name := range in.names {
		t := r.template("", name)
		if t == nil {
			return fail("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
		}
		in.ids = append(in.ids, t.ID)
	}
	match, err := matcher(in.filters, templateAttributes(), func(t *launchTemplate) tags { return t.Tags })
	if err != nil {
		return err
	}
	missing := func(id string) *apiError { return templateNotFound(id, "") }
	return runDescribe(rq, in.describe, &r.EC2.LaunchTemplates, match, missing, "launchTemplates", rq.xml.writeTemplateBody)
}

type describeVersionsInput struct {
	describe
	ref      templateRef
	versions []string
	min, max string
	resolve  bool
}

func parseDescribeVersions(p *params) describeVersionsInput {
	p.boolean("IncludeManagedResources")
	in := describeVersionsInput{
		describe: parseDescribe(p, "", 1, 200, 200),
		ref:      templateRef{id: p.text("LaunchTemplateId"), name: p.text("LaunchTemplateName")},
		versions: p.strings("LaunchTemplateVersion"),
		min:      p.text("MinVersion"), max: p.text("MaxVersion"), resolve: p.boolean("ResolveAlias"),
	}
	ranged := in.min != "" || in.max != ""
	switch {
	case in.ref.id != "" && in.ref.name != "":
		p.reject(fail("InvalidParameterCombination", "Only one of LaunchTemplateId and LaunchTemplateName may be specified"))
	case in.ref == (templateRef{}) && (len(in.versions) == 0 || ranged):
		p.reject(fail("MissingParameter", "Either a launch template or the versions $Latest and $Default must be specified"))
	case len(in.versions) > 0 && ranged:
		p.reject(fail("InvalidParameterCombination", "Versions may not be used in combination with MinVersion and MaxVersion"))
	case len(in.versions) > 200:
		p.bad("LaunchTemplateVersion", decimal(int64(len(in.versions))), "At most 200 versions can be specified.")
	}
	if in.ref == (templateRef{}) {
		for _, v := range in.versions {
			if v != "$Latest" && v != "$Default" {
				p.reject(fail("InvalidParameterValue", "Value (%s) for parameter versions is invalid. Without a launch template, only $Latest and $Default are allowed.", v))
			}
		}
	}
	return in
}

// versionRow is a version together with its template.
type versionRow struct {
	t *launchTemplate
	v *ltVersion
}

func versionAttributes() attributes[versionRow] {
	data := func(name string) func(versionRow) []string {
		return one(func(row versionRow) string { return row.v.Data.text(name) })
	}
	metadata := func(name string) func(versionRow) []string {
		return one(func(row versionRow) string { return row.v.Data.sub("MetadataOptions").text(name) })
	}
	return attributes[versionRow]{
		"create-time":               one(func(row versionRow) string { return row.v.Created.Format(xmlTime) }),
		"is-default-version":        one(func(row versionRow) string { return strconv.FormatBool(row.v.Number == row.t.Default) }),
		"ebs-optimized":             data("EbsOptimized"),
		"image-id":                  data("ImageId"),
		"instance-type":             data("InstanceType"),
		"kernel-id":                 data("KernelId"),
		"ram-disk-id":               data("RamDiskId"),
		"http-endpoint":             metadata("HttpEndpoint"),
		"http-protocol-ipv4":        metadata("HttpEndpoint"),
		"http-tokens":               metadata("HttpTokens"),
		"host-resource-group-arn":   one(func(row versionRow) string { return row.v.Data.sub("Placement").text("HostResourceGroupArn") }),
		"iam-instance-profile":      one(func(row versionRow) string { return row.v.Data.sub("IamInstanceProfile").text("Arn") }),
		"license-configuration-arn": licenseArns,
		"network-card-index":        one(func(row versionRow) string { return row.v.Data.firstInterface().text("NetworkCardIndex") }),
	}
}

func licenseArns(row versionRow) []string {
	var arns []string
	for _, l := range row.v.Data.list("LicenseSpecifications") {
		arns = append(arns, l.text("LicenseConfigurationArn"))
	}
	return arns
}

func describeLaunchTemplateVersions(rq *request, in describeVersionsInput) error {
	match, err := matcher(in.filters, versionAttributes(), func(versionRow) tags { return nil })
	if err != nil {
		return err
	}
	if in.ref == (templateRef{}) {
		return describeAllVersions(rq, in, match)
	}
	t, err := in.ref.find(rq.region)
	if err != nil {
		return err
	}
	chosen, err := chooseVersions(t, in)
	if err != nil {
		return err
	}
	// Newest first: the keys count down.
	keys := make([]string, len(chosen))
	byKey := make(map[string]*ltVersion, len(chosen))
	for i := range chosen {
		v := chosen[len(chosen)-1-i]
		keys[i] = fmt.Sprintf("%019d", 1<<62-v.Number)
		byKey[keys[i]] = v
	}
	return rq.writeVersions(in, keys, func(key string) (versionRow, bool) {
		row := versionRow{t, byKey[key]}
		return row, match(row)
	})
}

// chooseVersions are the versions of a template that were asked for, ascending,
// each once.
func chooseVersions(t *launchTemplate, in describeVersionsInput) ([]*ltVersion, error) {
	if len(in.versions) == 0 {
		return versionRange(t, in.min, in.max)
	}
	wanted := map[int64]bool{}
	for _, text := range in.versions {
		v := t.pick(text)
		if v == nil || text == "" {
			return nil, versionNotFound(t, text)
		}
		wanted[v.Number] = true
	}
	var out []*ltVersion
	for _, v := range t.Versions {
		if wanted[v.Number] {
			out = append(out, v)
		}
	}
	return out, nil
}

func versionRange(t *launchTemplate, low, high string) ([]*ltVersion, error) {
	bound := func(text string, otherwise int64) (int64, error) {
		switch text {
		case "":
			return otherwise, nil
		case "$Latest":
			return t.latest(), nil
		case "$Default":
			return t.Default, nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fail("InvalidParameterValue", "Value (%s) is not a version number.", text)
		}
		return n, nil
	}
	from, err := bound(low, 0)
	if err != nil {
		return nil, err
	}
	to, err := bound(high, t.latest())
	if err != nil {
		return nil, err
	}
	var out []*ltVersion
	for _, v := range t.Versions {
		if v.Number >= from && v.Number <= to {
			out = append(out, v)
		}
	}
	return out, nil
}

// describeAllVersions serves the account-wide form: the latest and the default
// version of every template, one row where both are the same.
func describeAllVersions(rq *request, in describeVersionsInput, match func(versionRow) bool) error {
	templates := &rq.region.EC2.LaunchTemplates
	latest := contains(in.versions, "$Latest")
	keys := make([]string, 0, templates.len())
	for _, id := range templates.sorted() {
		t := templates.get(id)
		if latest {
			keys = append(keys, id+" 1")
		}
		if contains(in.versions, "$Default") && (!latest || t.latest() != t.Default) {
			keys = append(keys, id+" 2")
		}
	}
	return rq.writeVersions(in, keys, func(key string) (versionRow, bool) {
		id, which, _ := strings.Cut(key, " ")
		t := templates.get(id)
		row := versionRow{t, t.version(t.Default)}
		if which == "1" {
			row.v = t.version(t.latest())
		}
		return row, match(row)
	})
}

func (rq *request) writeVersions(in describeVersionsInput, keys []string, row func(key string) (versionRow, bool)) error {
	rq.xml.open("launchTemplateVersionSet")
	next, err := rq.page(keys, in.token, in.limit, func(key string) bool {
		at, ok := row(key)
		if ok {
			rq.writeVersion("item", at.t, at.v, in.resolve)
		}
		return ok
	})
	if err != nil {
		return err
	}
	rq.xml.close("launchTemplateVersionSet")
	rq.xml.optional("nextToken", next)
	return nil
}
