package wire

import (
	"net/url"
	"reflect"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

func serviceOf(ec2 bool) *model.Service {
	if ec2 {
		return model.Services()["ec2"]
	}
	return model.Services()["autoscaling"]
}

func mustParse(t *testing.T, body string, ec2 bool) *Params {
	t.Helper()
	d := QueryDialect()
	if ec2 {
		d = EC2Dialect()
	}
	p, err := ParseForm(body, serviceOf(ec2), d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func finishCode(p *Params) string {
	if err := p.finish(); err != nil {
		return AsError(err, Dialect{}).Code
	}
	return ""
}

func TestParamsReadBothListStyles(t *testing.T) {
	for _, tt := range []struct {
		body string
		ec2  bool
	}{
		{"Filter.2.Name=b&Filter.1.Name=a&Filter.10.Name=c&Filter.1.Value.1=x&Filter.1.Value.2=y", true},
		{"Filter.member.2.Name=b&Filter.member.1.Name=a&Filter.member.10.Name=c&Filter.member.1.Value.member.1=x&Filter.member.1.Value.member.2=y", false},
	} {
		p := mustParse(t, tt.body, tt.ec2)
		var got [][]string
		for _, f := range p.List("Filter") {
			got = append(got, append([]string{f.Text("Name")}, f.Strings("Value")...))
		}
		if want := [][]string{{"a", "x", "y"}, {"b"}, {"c"}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: filters = %v, want %v", tt.body, got, want)
		}
		if code := finishCode(p); code != "" {
			t.Errorf("%s: refused with %s", tt.body, code)
		}
	}
}

func TestParamsRefuseWhatNobodyRead(t *testing.T) {
	tests := []struct {
		body string
		want string
	}{
		{"A=1&L.1=x", ""},
		{"A=1&L=", ""},
		{"A=1&B=2", "UnknownParameter"},
		{"A=1&L.0=x", "UnknownParameter"},
		{"A=1&L.01=x", "UnknownParameter"},
		{"A=1&L.x=x", "UnknownParameter"},
		{"A=1&L.member.1=x", "UnknownParameter"},
		{"A=1&L=y&L.1=x", "UnknownParameter"},
		{"A=1&A.B=x", "UnknownParameter"},
		{"A=x", "InvalidParameterValue"},
		{"A=", "InvalidParameterValue"},
		{"L.1=x", ""},
	}
	for _, tt := range tests {
		p := mustParse(t, tt.body, true)
		p.OptionalInt("A")
		p.Strings("L")
		if got := finishCode(p); got != tt.want {
			t.Errorf("%s: code %q, want %q", tt.body, got, tt.want)
		}
	}
	for _, body := range []string{"A=1&A=2", "A=%zz", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q=1"} {
		if _, err := ParseForm(body, serviceOf(true), EC2Dialect()); err == nil {
			t.Errorf("%s: accepted", body)
		}
	}
}

func TestParamsDigestLeavesTheTokenOut(t *testing.T) {
	base := mustParse(t, "Action=X&A=1&ClientToken=a", true).digest()
	if mustParse(t, "ClientToken=b&A=1&Action=X", true).digest() != base {
		t.Error("another client token or order changes the digest")
	}
	for _, other := range []string{"Action=X&A=2", "Action=Y&A=1", "Action=X&A=1&B=", "Action=X&A="} {
		if mustParse(t, other, true).digest() == base {
			t.Errorf("%s has the digest of another request", other)
		}
	}
}

// FuzzParams feeds forms to the parser and to the launch template fields: nothing
// panics, and every parameter is either read or refused.
func FuzzParams(f *testing.F) {
	f.Add("Action=CreateLaunchTemplate&Version=2016-11-15&LaunchTemplateData.BlockDeviceMapping.1.Ebs.VolumeSize=20", true)
	f.Add("Action=X&Tags.member.1.Key=a&Tags.member.1.Value=%00", false)
	f.Add("LaunchTemplateData.UserData=&LaunchTemplateData.TagSpecification.1.Tag.1.Key=a&.=1&..a=", true)
	f.Add("LaunchTemplateData.InstanceRequirements.VCpuCount.Min=9999999999999999999&L.99999999999999999999=1", true)
	f.Fuzz(func(t *testing.T, body string, ec2 bool) {
		d := QueryDialect()
		if ec2 {
			d = EC2Dialect()
		}
		p, err := ParseForm(body, serviceOf(ec2), d)
		if err != nil {
			return
		}
		sv := model.Services()["ec2"]
		p.top.svc, p.Shape = sv, sv.Operations["CreateLaunchTemplate"].In
		sv.Operations["CreateLaunchTemplate"].CheckForm(p.node)
		var w XML
		w.WriteShape(p.Data("LaunchTemplateData"), sv.Shapes["ResponseLaunchTemplateData"])
		p.Text("Action")
		p.Text("Version")
		pairs, _ := url.ParseQuery(body)
		for name := range pairs {
			node := p.top.root
			for _, part := range splitDots(name) {
				if node = node.Kids[part]; node == nil {
					t.Fatalf("parameter %q is not in the tree", name)
				}
			}
			if !node.Read && p.finish() == nil {
				t.Fatalf("parameter %q was neither read nor refused", name)
			}
		}
	})
}

func splitDots(name string) []string {
	var parts []string
	start := 0
	for i := 0; i <= len(name); i++ {
		if i == len(name) || name[i] == '.' {
			parts = append(parts, name[start:i])
			start = i + 1
		}
	}
	return parts
}
