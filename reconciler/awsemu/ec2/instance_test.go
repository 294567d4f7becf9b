package ec2

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/iam"
	"github.com/weir-gitops/weir/reconciler/awsemu/kms"
	"github.com/weir-gitops/weir/reconciler/awsemu/ssm"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// instanceEnv is a region on a clock that stands still, with a launch template.
// testRegion is a region without a server; changed is told of its instances.
type testRegion struct {
	*Region
	world    world.World
	launches world.Script[LaunchFault]
	changed  func(in *Instance, from string)
}

func newTestRegion() *testRegion {
	quotas, err := world.MergeQuotas(nil)
	if err != nil {
		panic(err) // nothing is overridden
	}
	r := &testRegion{Region: &Region{}, world: world.World{Quotas: quotas, Timings: world.Fast(), State: &world.State{}, Now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}}
	base := &world.Region{Account: iam.DefaultAccount, Name: "eu-west-1"}
	base.Join(&r.world)
	parameters, keys := &ssm.Region{}, &kms.Region{}
	parameters.Join(base, keys)
	r.Join(base, &iam.Region{Region: base, Entities: iam.NewAccount(base.Account)}, parameters, keys, &r.launches, func(in *Instance, from string) {
		if r.changed != nil {
			r.changed(in, from)
		}
	})
	r.Fill()
	return r
}

// pass lets everything happen that is due in d.
func (r *testRegion) pass(d time.Duration) {
	until := r.world.Now.Add(d)
	for t, ok := r.world.Next(until); ok; t, ok = r.world.Next(until) {
		Timers()[t.Kind](r.Region, t.Key)
	}
}

func instanceEnv() (*testRegion, LaunchSpec) {
	r := newTestRegion()
	data := wire.Data{
		"ImageId": "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64", "InstanceType": "m5.large",
		"TagSpecifications": []any{map[string]any{"ResourceType": "instance", "Tags": []any{
			map[string]any{"Key": "from", "Value": "template"}, map[string]any{"Key": "both", "Value": "template"}}}},
	}
	lt := r.AddTemplate("web", "me", data, "", nil)
	return r, LaunchSpec{Template: lt, Version: 1, Data: data, Tags: world.Tags{{Key: "both", Value: "group"}}, Owner: "test"}
}

func TestInstanceLife(t *testing.T) {
	r, spec := instanceEnv()
	var seen []string
	r.changed = func(in *Instance, from string) {
		seen = append(seen, fmt.Sprintf("%s: %s to %s", r.Now().Format("04:05"), from, in.State))
	}
	in, err := r.LaunchInstance(spec)
	if err != nil {
		t.Fatal(err)
	}
	if in.PrivateIP != "172.31.0.4" || in.Architecture != "x86_64" || !strings.HasPrefix(in.ImageID, "ami-") || len(in.Groups) != 1 {
		t.Errorf("instance = %+v", in)
	}
	if both, _ := in.Tags.Get("both"); both != "group" {
		t.Errorf("tag both = %q, want the launcher's", both)
	}
	if v, _ := in.Tags.Get("aws:ec2launchtemplate:version"); v != "1" {
		t.Errorf("launch template version tag = %q", v)
	}
	r.pass(time.Second)
	r.TerminateInstance(in.ID, "test")
	r.TerminateInstance(in.ID, "again")
	r.pass(time.Hour) // one jump over all that is due
	want := []string{"00:00:  to pending", "00:01: pending to running", "00:01: running to shutting-down", "00:02: shutting-down to terminated"}
	if got := strings.Join(seen, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("changes:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	if r.Instances.Len() != 0 {
		t.Error("a terminated instance is never forgotten")
	}
	if got := r.Subnets.Get(in.SubnetID).available(); got != 4091 {
		t.Errorf("addresses = %d, want all 4091 back", got)
	}
}

func TestLaunchRefusals(t *testing.T) {
	tests := []struct {
		name   string
		change func(*LaunchSpec)
		want   string
	}{
		{"image gone", func(s *LaunchSpec) { s.ImageID = "ami-0123456789abcdef0" }, "InvalidAMIID.NotFound"},
		{"no image", func(s *LaunchSpec) { s.Data = wire.Data{} }, "MissingParameter"},
		{"other architecture", func(s *LaunchSpec) { s.InstanceType = "m7g.large" }, "InvalidParameterValue"},
		{"unknown type", func(s *LaunchSpec) { s.InstanceType = "m5.tiny" }, "InvalidParameterValue"},
		{"unknown subnet", func(s *LaunchSpec) { s.SubnetID = "subnet-0123456789abcdef0" }, "InvalidSubnetID.NotFound"},
		{"unknown key", func(s *LaunchSpec) { s.Data = s.Data.MergedWith(wire.Data{"KeyName": "nobody"}) }, "InvalidKeyPair.NotFound"},
		{"unknown profile", func(s *LaunchSpec) { s.Profile = "nobody" }, "InvalidParameterValue"},
		{"unknown group", func(s *LaunchSpec) {
			s.Data = s.Data.MergedWith(wire.Data{"SecurityGroupIds": []any{"sg-0123456789abcdef0"}})
		}, "InvalidGroup.NotFound"},
		{"group of another VPC", func(s *LaunchSpec) {
			s.Data = s.Data.MergedWith(wire.Data{"SecurityGroupIds": []any{"sg-other"}})
		}, "InvalidParameter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, spec := instanceEnv()
			r.SecurityGroups.Put("sg-other", &SecurityGroup{ID: "sg-other", VpcID: "vpc-other"})
			tt.change(&spec)
			in, err := r.LaunchInstance(spec)
			if err == nil {
				t.Fatalf("launched %+v", in)
			}
			if err.Code != tt.want {
				t.Errorf("code = %s, want %s", err.Code, tt.want)
			}
			for _, id := range r.Subnets.Sorted() {
				if used := r.Subnets.Get(id).Used; used != 0 {
					t.Errorf("%d addresses of %s are lost", used, id)
				}
			}
		})
	}
}

func TestLaunchFaults(t *testing.T) {
	r, spec := instanceEnv()
	remove := r.launches.Add(LaunchFault{InstanceType: "m5.large", AvailabilityZone: "eu-west-1a", Code: "InsufficientInstanceCapacity"})
	spec.Zone = "eu-west-1a"
	if _, err := r.LaunchInstance(spec); err == nil || err.Code != "InsufficientInstanceCapacity" {
		t.Errorf("launch in the full zone: %v", err)
	}
	spec.Zone = "eu-west-1b"
	if in, err := r.LaunchInstance(spec); err != nil || in.Zone != "eu-west-1b" {
		t.Errorf("launch in another zone: %+v, %v", in, err)
	}
	remove()
	r.launches.Add(LaunchFault{})
	if in, err := r.LaunchInstance(spec); err != nil || !in.Unhealthy {
		t.Errorf("launch of a broken image: %+v, %v", in, err)
	}
}

func TestSubnetAddressesRunOutAndComeBack(t *testing.T) {
	s := &Subnet{CIDR: "10.0.0.0/28"}
	seen := map[string]bool{}
	for {
		ip, ok := s.allocate()
		if !ok {
			break
		}
		if seen[ip] {
			t.Fatalf("%s is given out twice", ip)
		}
		seen[ip] = true
	}
	if len(seen) != 11 || seen["10.0.0.3"] || seen["10.0.0.15"] || !seen["10.0.0.4"] {
		t.Errorf("addresses = %v, want the 11 from 10.0.0.4 to 10.0.0.14", seen)
	}
	s.release("10.0.0.7")
	if ip, ok := s.allocate(); !ok || ip != "10.0.0.7" {
		t.Errorf("took %q, want the one that came back", ip)
	}
}
