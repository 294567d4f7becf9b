package cloudtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// TemplateField is a row of a launch template with two possible values.
type TemplateField struct {
	Row *field.Row
	// Declared holds the first value, and the other members that it requires.
	Declared intent.TemplateData
	// ByHand sets the second value in a request, by AWS's name of the member.
	ByHand func(*types.RequestLaunchTemplateData)
	// Changed is the value of Declared after the change.
	Changed intent.TemplateData
}

// TemplateFields returns all rows of launch templates except the rows that the planner fills.
func TemplateFields() (out []TemplateField) {
	for _, r := range field.Rows(field.Template) {
		by, _, _ := strings.Cut(r.Special, ":")
		if slices.Contains([]string{"plan", "resolve", "userdata"}, by) || r.Pool == "additionalTags" {
			continue
		}
		f := TemplateField{Row: r, Declared: beside(r), Changed: beside(r)}
		var kind reflect.Type
		member := cmp.Or(r.Member, r.AWS)
		at(reflect.ValueOf(&f.Declared).Elem(), member, func(v reflect.Value) { kind = v.Type(); put(v, sample(r, v.Type(), 0)) })
		at(reflect.ValueOf(&f.Changed).Elem(), member, func(v reflect.Value) { put(v, sample(r, v.Type(), 1)) })
		f.ByHand = func(d *types.RequestLaunchTemplateData) {
			at(reflect.ValueOf(d).Elem(), r.AWS, func(v reflect.Value) { put(v, sample(r, kind, 1)) })
		}
		out = append(out, f)
	}
	return out
}

// beside returns the members that EC2 requires together with a member.
func beside(r *field.Row) (d intent.TemplateData) {
	yes, first := true, int32(0)
	switch within, _, _ := strings.Cut(r.AWS, "."); within {
	case "BlockDeviceMappings[]":
		d.BlockDeviceMappings = []intent.BlockDeviceMapping{{DeviceName: "/dev/sdh", Ebs: intent.Ebs{VolumeSize: 100, VolumeType: "gp3", Encrypted: &yes}}}
	case "NetworkInterfaces[]":
		d.NetworkInterfaces = []intent.NetworkInterface{{DeviceIndex: &first}}
	case "InstanceMarketOptions":
		d.InstanceMarketOptions = &intent.MarketOptions{MarketType: "spot"}
	case "SecondaryInterfaces[]":
		d.SecondaryInterfaces = []intent.SecondaryInterface{{DeviceIndex: &first}}
	case "Placement":
		d.Placement = &intent.Placement{}
		if strings.HasSuffix(r.AWS, "PartitionNumber") {
			d.Placement.GroupName = "near"
		}
	}
	return d
}

// special holds values of members whose texts or numbers have a special form that no row describes.
var special = map[string][2]any{
	"BlockDeviceMappings[].Ebs.Iops":                                 {4000, 5000},
	"BlockDeviceMappings[].Ebs.Throughput":                           {200, 250},
	"BlockDeviceMappings[].Ebs.VolumeSize":                           {200, 300},
	"BlockDeviceMappings[].Ebs.VolumeType":                           {"gp2", "gp3"},
	"CapacityReservationSpecification.CapacityReservationPreference": {"open", "none"},
	"IamInstanceProfile.Arn":                                         {profiles + nodes, profiles + control},
	"IamInstanceProfile.Name":                                        {nodes, control},
	"InstanceMarketOptions.MarketType":                               {"spot", "capacity-block"},
	"InstanceMarketOptions.SpotOptions.MaxPrice":                     {"0.1", "0.2"},
	"InstanceType": {"m5.large", "m5.xlarge"},
}

// The instance profiles that Cluster API Provider AWS creates.
const (
	profiles = "arn:aws:iam::000000000000:instance-profile/"
	nodes    = "nodes.cluster-api-provider-aws.sigs.k8s.io"
	control  = "control-plane.cluster-api-provider-aws.sigs.k8s.io"
)

// sample returns one of two possible values for a member of a type. For a text with only one value, the
// second is "".
func sample(r *field.Row, t reflect.Type, n int) reflect.Value {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if values, ok := special[r.AWS]; ok {
		return reflect.ValueOf(values[n])
	}
	switch {
	case t.Kind() == reflect.Bool:
		return reflect.ValueOf(n == 0)
	case t.Kind() == reflect.Int32:
		least := int64(1)
		if r.Min != nil {
			least = *r.Min
		}
		return reflect.ValueOf(int32(least) + int32(n)) //nolint:gosec // limits are small
	case r.Values != "":
		return reflect.ValueOf(append(strings.Split(r.Values, "|"), "")[n])
	case r.Begins == "arn:":
		return reflect.ValueOf(fmt.Sprintf("arn:aws:service:eu-west-1:000000000000:thing/%d", n))
	case r.Begins != "":
		return reflect.ValueOf(fmt.Sprintf("%s%017d", r.Begins, n))
	}
	return reflect.ValueOf([]string{"one", "two"}[n])
}

// put sets a value. A list gets it as its only element.
func put(v, to reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		v = v.Index(0)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	v.Set(to.Convert(v.Type()))
}

// at calls do for the member at a path, and creates missing members on the way.
func at(v reflect.Value, path string, do func(reflect.Value)) {
	name, rest, _ := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	for i := range v.NumField() {
		if f := v.Type().Field(i); strings.EqualFold(cmp.Or(field.JSONKey(f), f.Name), name) {
			v = v.Field(i)
			break
		}
	}
	if rest == "" {
		do(v)
		return
	}
	if list && v.Len() == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	}
	if list {
		v = v.Index(0)
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	at(v, rest, do)
}

// fieldContracts returns one contract for each row of a launch template. Declared values must be returned as
// they were sent, so that weir creates no further version. Manual changes must be visible, so that weir can
// correct them.
func fieldContracts() (out []contract) {
	for _, f := range TemplateFields() {
		out = append(out, contract{f.Row.AWS, nil, func(e *env) { e.comesBack(f.Declared, f) }})
	}
	yes, first, second := true, int32(0), int32(1)
	several := intent.TemplateData{NetworkInterfaces: []intent.NetworkInterface{
		{DeviceIndex: &first, InterfaceType: "efa", DeleteOnTermination: &yes, Groups: []string{"sg-0123456789abcdef0", "sg-1123456789abcdef0"}},
		{DeviceIndex: &second, NetworkCardIndex: &second, InterfaceType: "efa-only", Description: "second"},
	}}
	return append(out, contract{"several network interfaces", nil, func(e *env) { e.comesBack(several, TemplateField{}) }})
}

// comesBack creates a template and reads its version with weir's own adapter. Then it reads the version that
// a user makes from it.
func (e *env) comesBack(declared intent.TemplateData, f TemplateField) {
	e.Helper()
	image := e.image()
	filled := func(d intent.TemplateData) intent.TemplateData {
		d.ImageID, d.InstanceType = image, cmp.Or(d.InstanceType, "m5.large")
		return d
	}
	c := e.cloud()
	a := e.templateAction(e.mark, "a")
	a.Data = filled(declared)
	ref := e.run(c, a).Template
	e.Cleanup(func() {
		_, _ = c.Execute(e.background(), step.DeleteLaunchTemplate{Template: observed.TemplateRef{ID: ref.ID, Name: ref.Name}})
	})
	read := func(version string, want intent.TemplateData) {
		s := e.fill(c, e.observe(c, e.mark), observed.Needs{Versions: []observed.TemplateRef{{ID: ref.ID, Name: ref.Name, Version: version}}})
		for _, v := range s.Templates[e.name("a")].Versions {
			if fmt.Sprint(v.Number) != version {
				continue
			}
			if v.Unknown {
				e.Error("the version holds members that weir does not know")
			}
			v.Data.TagSpecifications = nil // moto server returns the tags of the template itself there
			e.equal("version "+version, filled(want), v.Data)
			return
		}
		e.Errorf("version %s was not read", version)
	}
	read("1", declared)
	if f.ByHand == nil {
		return
	}
	e.byHand(ref.ID, f.ByHand)
	read("2", f.Changed)
}

// byHand creates a version from the newest one, with a change.
func (e *env) byHand(template string, change func(*types.RequestLaunchTemplateData)) {
	e.Helper()
	out, err := e.ec2.DescribeLaunchTemplateVersions(e.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: &template, Versions: []string{"$Latest"}})
	e.must(err)
	text, err := json.Marshal(out.LaunchTemplateVersions[0].LaunchTemplateData)
	e.must(err)
	var data types.RequestLaunchTemplateData
	e.must(json.Unmarshal(text, &data))
	change(&data)
	_, err = e.ec2.CreateLaunchTemplateVersion(e.ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateId: aws.String(template), LaunchTemplateData: &data})
	e.must(err)
}
