package awsemu

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// instanceEnv is a region on a clock that stands still, with a launch template.
func instanceEnv(t *testing.T) (*Server, *region, *ManualClock, launchSpec) {
	t.Helper()
	clock := NewManualClock(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC))
	s, err := New(Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	r := s.region(defaultAccount, "eu-west-1")
	data := ltData{
		"ImageId": "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64", "InstanceType": "m5.large",
		"TagSpecifications": []any{map[string]any{"ResourceType": "instance", "Tags": []any{
			map[string]any{"Key": "from", "Value": "template"}, map[string]any{"Key": "both", "Value": "template"}}}},
	}
	lt := r.addTemplate("web", "me", data, "", nil)
	return s, r, clock, launchSpec{Template: lt, Version: 1, Data: data, Tags: tags{{"both", "group"}}, Owner: "test"}
}

func TestInstanceLife(t *testing.T) {
	s, r, clock, spec := instanceEnv(t)
	var seen []string
	s.order[1].instanceChanged = func(r *region, in *instance, from string) {
		seen = append(seen, fmt.Sprintf("%s: %s to %s", r.now().Format("04:05"), from, in.State))
	}
	in, err := r.launchInstance(spec)
	if err != nil {
		t.Fatal(err)
	}
	if in.PrivateIP != "172.31.0.4" || in.Architecture != "x86_64" || !strings.HasPrefix(in.ImageID, "ami-") || len(in.Groups) != 1 {
		t.Errorf("instance = %+v", in)
	}
	if both, _ := in.Tags.get("both"); both != "group" {
		t.Errorf("tag both = %q, want the launcher's", both)
	}
	if v, _ := in.Tags.get("aws:ec2launchtemplate:version"); v != "1" {
		t.Errorf("launch template version tag = %q", v)
	}
	clock.Advance(time.Second)
	s.runDue()
	r.terminateInstance(in.ID, "test")
	r.terminateInstance(in.ID, "again")
	clock.Advance(time.Hour) // one jump over all that is due
	s.runDue()
	want := []string{"00:00:  to pending", "00:01: pending to running", "00:01: running to shutting-down", "00:02: shutting-down to terminated"}
	if got := strings.Join(seen, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("changes:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	if r.EC2.Instances.len() != 0 {
		t.Error("a terminated instance is never forgotten")
	}
	if got := r.EC2.Subnets.get(in.SubnetID).available(); got != 4091 {
		t.Errorf("addresses = %d, want all 4091 back", got)
	}
}

func TestLaunchRefusals(t *testing.T) {
	tests := []struct {
		name   string
		change func(*launchSpec)
		want   string
	}{
		{"image gone", func(s *launchSpec) { s.ImageID = "ami-0123456789abcdef0" }, "InvalidAMIID.NotFound"},
		{"no image", func(s *launchSpec) { s.Data = ltData{} }, "MissingParameter"},
		{"other architecture", func(s *launchSpec) { s.InstanceType = "m7g.large" }, "InvalidParameterValue"},
		{"unknown type", func(s *launchSpec) { s.InstanceType = "m5.tiny" }, "InvalidParameterValue"},
		{"unknown subnet", func(s *launchSpec) { s.SubnetID = "subnet-0123456789abcdef0" }, "InvalidSubnetID.NotFound"},
		{"unknown key", func(s *launchSpec) { s.Data = s.Data.mergedWith(ltData{"KeyName": "nobody"}) }, "InvalidKeyPair.NotFound"},
		{"unknown profile", func(s *launchSpec) { s.Profile = "nobody" }, "InvalidParameterValue"},
		{"unknown group", func(s *launchSpec) {
			s.Data = s.Data.mergedWith(ltData{"SecurityGroupIds": []any{"sg-0123456789abcdef0"}})
		}, "InvalidGroup.NotFound"},
		{"group of another VPC", func(s *launchSpec) {
			s.Data = s.Data.mergedWith(ltData{"SecurityGroupIds": []any{"sg-other"}})
		}, "InvalidParameter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, r, _, spec := instanceEnv(t)
			r.EC2.SecurityGroups.put("sg-other", &securityGroup{ID: "sg-other", VpcID: "vpc-other"})
			tt.change(&spec)
			in, err := r.launchInstance(spec)
			if err == nil {
				t.Fatalf("launched %+v", in)
			}
			if err.Code != tt.want {
				t.Errorf("code = %s, want %s", err.Code, tt.want)
			}
			for _, id := range r.EC2.Subnets.sorted() {
				if used := r.EC2.Subnets.get(id).Used; used != 0 {
					t.Errorf("%d addresses of %s are lost", used, id)
				}
			}
		})
	}
}

func TestLaunchFaults(t *testing.T) {
	s, r, _, spec := instanceEnv(t)
	remove := s.Faults().AddLaunch(LaunchFault{InstanceType: "m5.large", AvailabilityZone: "eu-west-1a", Code: "InsufficientInstanceCapacity"})
	spec.Zone = "eu-west-1a"
	if _, err := r.launchInstance(spec); err == nil || err.Code != "InsufficientInstanceCapacity" {
		t.Errorf("launch in the full zone: %v", err)
	}
	spec.Zone = "eu-west-1b"
	if in, err := r.launchInstance(spec); err != nil || in.Zone != "eu-west-1b" {
		t.Errorf("launch in another zone: %+v, %v", in, err)
	}
	remove()
	s.Faults().AddLaunch(LaunchFault{})
	if in, err := r.launchInstance(spec); err != nil || !in.Unhealthy {
		t.Errorf("launch of a broken image: %+v, %v", in, err)
	}
}

func TestSubnetAddressesRunOutAndComeBack(t *testing.T) {
	s := &subnet{CIDR: "10.0.0.0/28"}
	seen := map[string]bool{}
	for {
		ip, ok := s.take()
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
	if ip, ok := s.take(); !ok || ip != "10.0.0.7" {
		t.Errorf("took %q, want the one that came back", ip)
	}
}
