package ec2

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

func writeTemplate(w *wire.XML, element string, t *LaunchTemplate) {
	w.Open(element)
	writeTemplateBody(w, t)
	w.Close(element)
}

func writeTemplateBody(w *wire.XML, t *LaunchTemplate) {
	w.Text("launchTemplateId", t.ID)
	w.Text("launchTemplateName", t.Name)
	w.Time("createTime", t.Created)
	w.Text("createdBy", t.CreatedBy)
	w.Integer("defaultVersionNumber", t.Default)
	w.Integer("latestVersionNumber", t.latest())
	w.WriteTags(t.Tags)
}

// writeVersion writes a version. resolve replaces a parameter reference by its image.
func writeVersion(rq *request, element string, t *LaunchTemplate, v *Version, resolve bool) {
	w := &rq.XML
	w.Open(element)
	w.Text("launchTemplateId", t.ID)
	w.Text("launchTemplateName", t.Name)
	w.Integer("versionNumber", v.Number)
	w.Optional("versionDescription", v.Description)
	w.Time("createTime", v.Created)
	w.Text("createdBy", v.CreatedBy)
	w.Boolean("defaultVersion", v.Number == t.Default)
	data := v.Data
	if resolve && strings.HasPrefix(data.Text("ImageId"), "resolve:ssm:") {
		if id, err := rq.Region.ResolveImage(data.Text("ImageId")); err == nil {
			data = data.MergedWith(wire.Data{"ImageId": id})
		}
	}
	w.Open("launchTemplateData")
	w.WriteShape(data, rq.Service.Shapes["ResponseLaunchTemplateData"])
	w.Close("launchTemplateData")
	w.Close(element)
}

// writeWarning writes the reason why a launch would fail. Like EC2, it does not refuse the template.
func writeWarning(rq *request, data wire.Data) {
	var found []*wire.Error
	r := rq.Region
	arch := ""
	if id := data.Text("ImageId"); id != "" {
		resolved, err := r.ResolveImage(id)
		switch im := r.Images.Get(resolved); {
		case err != nil:
			found = append(found, err)
		case im == nil:
			found = append(found, wire.Fail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id))
		default:
			arch = im.Architecture
		}
	}
	if name := data.Text("InstanceType"); name != "" {
		kind, known := InstanceTypes()[name]
		switch {
		case !known:
			found = append(found, wire.Fail("InvalidParameterValue", "Invalid value '%s' for InstanceType.", name))
		case arch != "" && arch != kind.Arch:
			found = append(found, wire.Fail("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI.", kind.Arch, arch))
		}
	}
	for _, id := range append(data.Texts("SecurityGroupIds"), firstInterface(data).Texts("Groups")...) {
		if !r.SecurityGroups.Has(id) {
			found = append(found, wire.Fail("InvalidGroup.NotFound", "The security group '%s' does not exist", id))
		}
	}
	if len(found) == 0 {
		return
	}
	w := &rq.XML
	w.Open("warning")
	wire.List(w, "errorSet", "item", found, func(e *wire.Error) {
		w.Text("code", e.Code)
		w.Text("message", e.Message)
	})
	w.Close("warning")
}

type describeTemplatesInput struct {
	describe
	LaunchTemplateIDs       []string
	LaunchTemplateNames     []string
	IncludeManagedResources bool // the emulator has no hidden ones
}

func (in *describeTemplatesInput) Check() error { return in.bound(1, 200, 200) }

func templateAttributes() attributes[*LaunchTemplate] {
	return attributes[*LaunchTemplate]{
		"launch-template-name": one(func(t *LaunchTemplate) string { return t.Name }),
		"create-time":          one(func(t *LaunchTemplate) string { return t.Created.Format(wire.Time) }),
	}
}

func describeLaunchTemplates(rq *request, in describeTemplatesInput) error {
	r := rq.Region
	for _, name := range in.LaunchTemplateNames {
		t := r.template("", name)
		if t == nil {
			return wire.Fail("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
		}
		in.LaunchTemplateIDs = append(in.LaunchTemplateIDs, t.ID)
	}
	match, err := matcher(in.Filters, templateAttributes(), func(t *LaunchTemplate) world.Tags { return t.Tags })
	if err != nil {
		return err
	}
	missing := func(id string) *wire.Error { return templateNotFound(id, "") }
	return runDescribe(rq, in.describe, in.LaunchTemplateIDs, &r.LaunchTemplates, match, missing, "launchTemplates", func(t *LaunchTemplate) { writeTemplateBody(&rq.XML, t) })
}

type describeVersionsInput struct {
	describe
	templateRef
	Versions                []string
	MinVersion, MaxVersion  string
	ResolveAlias            bool
	IncludeManagedResources bool
}

func (in *describeVersionsInput) Check() error {
	ranged := in.MinVersion != "" || in.MaxVersion != ""
	switch {
	case in.LaunchTemplateID != "" && in.LaunchTemplateName != "":
		return wire.Fail("InvalidParameterCombination", "Only one of LaunchTemplateId and LaunchTemplateName may be specified")
	case in.templateRef == (templateRef{}) && (len(in.Versions) == 0 || ranged):
		return wire.Fail("MissingParameter", "Either a launch template or the versions $Latest and $Default must be specified")
	case len(in.Versions) > 0 && ranged:
		return wire.Fail("InvalidParameterCombination", "Versions may not be used in combination with MinVersion and MaxVersion")
	case len(in.Versions) > 200:
		return badValue("LaunchTemplateVersion", strconv.Itoa(len(in.Versions)), "At most 200 versions can be specified.")
	}
	for _, v := range in.Versions {
		if in.templateRef == (templateRef{}) && v != "$Latest" && v != "$Default" {
			return wire.Fail("InvalidParameterValue", "Value (%s) for parameter versions is invalid. Without a launch template, only $Latest and $Default are allowed.", v)
		}
	}
	return in.bound(1, 200, 200)
}

// versionRow is a version, with its template.
type versionRow struct {
	t *LaunchTemplate
	v *Version
}

func versionAttributes() attributes[versionRow] {
	data := func(name string) func(versionRow) []string {
		return one(func(row versionRow) string { return row.v.Data.Text(name) })
	}
	metadata := func(name string) func(versionRow) []string {
		return one(func(row versionRow) string { return row.v.Data.Sub("MetadataOptions").Text(name) })
	}
	return attributes[versionRow]{
		"create-time":               one(func(row versionRow) string { return row.v.Created.Format(wire.Time) }),
		"is-default-version":        one(func(row versionRow) string { return strconv.FormatBool(row.v.Number == row.t.Default) }),
		"ebs-optimized":             data("EbsOptimized"),
		"image-id":                  data("ImageId"),
		"instance-type":             data("InstanceType"),
		"kernel-id":                 data("KernelId"),
		"ram-disk-id":               data("RamDiskId"),
		"http-endpoint":             metadata("HttpEndpoint"),
		"http-protocol-ipv4":        metadata("HttpEndpoint"),
		"http-tokens":               metadata("HttpTokens"),
		"host-resource-group-arn":   one(func(row versionRow) string { return row.v.Data.Sub("Placement").Text("HostResourceGroupArn") }),
		"iam-instance-profile":      one(func(row versionRow) string { return row.v.Data.Sub("IamInstanceProfile").Text("Arn") }),
		"license-configuration-arn": licenseArns,
		"network-card-index":        one(func(row versionRow) string { return firstInterface(row.v.Data).Text("NetworkCardIndex") }),
	}
}

func licenseArns(row versionRow) []string {
	var arns []string
	for _, l := range row.v.Data.List("LicenseSpecifications") {
		arns = append(arns, l.Text("LicenseConfigurationArn"))
	}
	return arns
}

func describeLaunchTemplateVersions(rq *request, in describeVersionsInput) error {
	match, err := matcher(in.Filters, versionAttributes(), func(versionRow) world.Tags { return nil })
	if err != nil {
		return err
	}
	if in.templateRef == (templateRef{}) {
		return describeAllVersions(rq, in, match)
	}
	t, err := in.find(rq.Region)
	if err != nil {
		return err
	}
	chosen, err := chooseVersions(t, in)
	if err != nil {
		return err
	}
	// The newest come first, so the keys descend.
	keys := make([]string, len(chosen))
	byKey := make(map[string]*Version, len(chosen))
	for i := range chosen {
		v := chosen[len(chosen)-1-i]
		keys[i] = fmt.Sprintf("%019d", 1<<62-v.Number)
		byKey[keys[i]] = v
	}
	return writeVersions(rq, in, keys, func(key string) (versionRow, bool) {
		row := versionRow{t, byKey[key]}
		return row, match(row)
	})
}

// chooseVersions returns the requested versions of a template in ascending order, without duplicates.
func chooseVersions(t *LaunchTemplate, in describeVersionsInput) ([]*Version, error) {
	if len(in.Versions) == 0 {
		return versionRange(t, in.MinVersion, in.MaxVersion)
	}
	wanted := map[int64]bool{}
	for _, text := range in.Versions {
		v := t.pick(text)
		if v == nil || text == "" {
			return nil, versionNotFound(t, text)
		}
		wanted[v.Number] = true
	}
	var out []*Version
	for _, v := range t.Versions {
		if wanted[v.Number] {
			out = append(out, v)
		}
	}
	return out, nil
}

func versionRange(t *LaunchTemplate, low, high string) ([]*Version, error) {
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
			return 0, wire.Fail("InvalidParameterValue", "Value (%s) is not a version number.", text)
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
	var out []*Version
	for _, v := range t.Versions {
		if v.Number >= from && v.Number <= to {
			out = append(out, v)
		}
	}
	return out, nil
}

// describeAllVersions returns versions of all templates in the account: the latest and the default version
// of each template, in one row if both are the same.
func describeAllVersions(rq *request, in describeVersionsInput, match func(versionRow) bool) error {
	templates := &rq.Region.LaunchTemplates
	latest := slices.Contains(in.Versions, "$Latest")
	keys := make([]string, 0, templates.Len())
	for _, id := range templates.Sorted() {
		t := templates.Get(id)
		if latest {
			keys = append(keys, id+" 1")
		}
		if slices.Contains(in.Versions, "$Default") && (!latest || t.latest() != t.Default) {
			keys = append(keys, id+" 2")
		}
	}
	return writeVersions(rq, in, keys, func(key string) (versionRow, bool) {
		id, which, _ := strings.Cut(key, " ")
		t := templates.Get(id)
		row := versionRow{t, t.Version(t.Default)}
		if which == "1" {
			row.v = t.Version(t.latest())
		}
		return row, match(row)
	})
}

func writeVersions(rq *request, in describeVersionsInput, keys []string, row func(key string) (versionRow, bool)) error {
	rq.XML.Open("launchTemplateVersionSet")
	next, err := rq.Page(keys, in.NextToken, in.limit, func(key string) bool {
		at, ok := row(key)
		if ok {
			writeVersion(rq, "item", at.t, at.v, in.ResolveAlias)
		}
		return ok
	})
	if err != nil {
		return err
	}
	rq.XML.Close("launchTemplateVersionSet")
	rq.XML.Optional("nextToken", next)
	return nil
}
