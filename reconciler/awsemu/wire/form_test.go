package wire

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

type testFilter struct {
	Name   string
	Values []string
}

type testDescribe struct {
	Filters    []testFilter
	MaxResults *int64
	NextToken  string
}

func bind(service, operation, body string, into any) error {
	d := QueryDialect()
	if service == "ec2" {
		d = EC2Dialect()
	}
	form, err := ParseForm(body, d)
	if err != nil {
		return err
	}
	b := &binding{op: model.Services()[service].Operations[operation], dialect: d}
	return b.structure(form.root, b.op.In, reflect.ValueOf(into).Elem(), "")
}

func TestFormListsOfBothProtocols(t *testing.T) {
	var ec2 struct{ testDescribe }
	if err := bind("ec2", "DescribeVpcs", "Action=DescribeVpcs&DryRun=true&Filter.2.Name=b&Filter.1.Name=a&Filter.10.Name=c&Filter.1.Value.1=x&Filter.1.Value.2=y&MaxResults=7", &ec2); err != nil {
		t.Fatal(err)
	}
	want := []testFilter{{"a", []string{"x", "y"}}, {"b", nil}, {"c", nil}}
	if !reflect.DeepEqual(ec2.Filters, want) || ec2.MaxResults == nil || *ec2.MaxResults != 7 {
		t.Errorf("EC2's form = %+v", ec2)
	}
	var groups struct{ Filters []testFilter }
	if err := bind("autoscaling", "DescribeAutoScalingGroups", "Filters.member.2.Name=b&Filters.member.1.Name=a&Filters.member.10.Name=c&Filters.member.1.Values.member.1=x&Filters.member.1.Values.member.2=y", &groups); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(groups.Filters, want) {
		t.Errorf("a query form = %+v", groups)
	}
}

// TestFormTellsAbsentFromEmpty: an update leaves what was not sent and empties what was
// sent empty.
func TestFormTellsAbsentFromEmpty(t *testing.T) {
	var in struct {
		TerminationPolicies, AvailabilityZones []string
		CapacityRebalance                      *bool
		Context, PlacementGroup                *string
		InstanceMaintenancePolicy              Data
		CapacityReservationSpecification       Data
	}
	if err := bind("autoscaling", "UpdateAutoScalingGroup", "TerminationPolicies=&CapacityRebalance=False&Context=&InstanceMaintenancePolicy.MinHealthyPercentage=090", &in); err != nil {
		t.Fatal(err)
	}
	switch {
	case in.TerminationPolicies == nil, len(in.TerminationPolicies) > 0, in.AvailabilityZones != nil,
		in.CapacityRebalance == nil, *in.CapacityRebalance, in.Context == nil, *in.Context != "", in.PlacementGroup != nil,
		in.InstanceMaintenancePolicy.Text("MinHealthyPercentage") != "90", in.CapacityReservationSpecification != nil:
		t.Errorf("read %+v", in)
	}
}

// TestFormRefusesWhatHasNoField: a parameter that AWS has and the struct does not.
func TestFormRefusesWhatHasNoField(t *testing.T) {
	for body, want := range map[string]string{
		"MaxResults=5":    "",
		"VpcId.1=vpc-1":   "UnknownParameter: The parameter VpcId is not recognized",
		"Filter.1.Name=a": "",
		"Filter.1.Name=a&Filter.1.Value.1=x&Other=1": "UnknownParameter: The parameter Other is not recognized",
		"MaxResults=many": "InvalidParameterValue: Value (many) for parameter MaxResults is invalid. Expected an integer.",
	} {
		got := ""
		if err := bind("ec2", "DescribeVpcs", body, &struct{ testDescribe }{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	var nested struct{ Filters []struct{ Name string } }
	if err := bind("ec2", "DescribeVpcs", "Filter.3.Value.1=x", &nested); err == nil || !strings.Contains(err.Error(), "Filter.3.Value ") {
		t.Errorf("a nested parameter without a field: %v", err)
	}
	for _, body := range []string{"A=1&A=2", "A=%zz", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q=1"} {
		if _, err := ParseForm(body, EC2Dialect()); err == nil {
			t.Errorf("%s: accepted", body)
		}
	}
}

func TestFormDigestLeavesTheTokenOut(t *testing.T) {
	digest := func(body string) string {
		f, err := ParseForm(body, EC2Dialect())
		if err != nil {
			t.Fatal(err)
		}
		return f.digest()
	}
	base := digest("Action=X&A=1&ClientToken=a")
	if digest("ClientToken=b&A=1&Action=X") != base {
		t.Error("another client token or order changes the digest")
	}
	for _, other := range []string{"Action=X&A=2", "Action=Y&A=1", "Action=X&A=1&B=", "Action=X&A="} {
		if digest(other) == base {
			t.Errorf("%s has the digest of another request", other)
		}
	}
}

// FuzzForm: whatever the model takes can be bound and written.
func FuzzForm(f *testing.F) {
	f.Add("Action=CreateLaunchTemplate&Version=2016-11-15&LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize=20")
	f.Add("LaunchTemplateData.UserData=&LaunchTemplateData.TagSpecification.1.Tag.1.Key=a&.=1&..a=")
	f.Add("LaunchTemplateData.InstanceRequirements.VCpuCount.Min=9999999999999999999&L.99999999999999999999=1")
	f.Add("TagSpecification.1.ResourceType=a&TagSpecification.1.Tag.2.Key=b&TagSpecification.01.Tag=")
	f.Fuzz(func(t *testing.T, body string) {
		var in struct {
			LaunchTemplateName, ClientToken, VersionDescription string
			LaunchTemplateData                                  Data
			TagSpecifications                                   []struct {
				ResourceType string
				Tags         []struct{ Key, Value string }
			}
		}
		if bind("ec2", "CreateLaunchTemplate", body, &in) != nil {
			return
		}
		var w XML
		w.WriteShape(in.LaunchTemplateData, model.Services()["ec2"].Shapes["ResponseLaunchTemplateData"])
		form, err := ParseForm(body, EC2Dialect())
		if err != nil {
			t.Fatal(err)
		}
		if form.Has("LaunchTemplateName") && in.LaunchTemplateName != form.Get("LaunchTemplateName") {
			t.Errorf("name = %q, want %q", in.LaunchTemplateName, form.Get("LaunchTemplateName"))
		}
	})
}
