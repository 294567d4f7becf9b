package terraform

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

const state = `{"version": 4, "terraform_version": "1.9.0", "serial": 3, "resources": [
 {"mode": "managed", "type": "aws_autoscaling_group", "name": "web", "instances": [{"attributes": {"id": "web-1", "name": "web-1", "arn": "arn:aws:autoscaling:eu-west-1:111122223333:autoScalingGroup:u:autoScalingGroupName/web-1"}}]},
 {"module": "module.pool[\"a.b[\"].module.inner", "mode": "managed", "type": "aws_autoscaling_group", "name": "this", "instances": [
  {"index_key": "x]\"", "attributes": {"id": "x", "name": "x", "arn": "arn:aws:autoscaling:eu-west-1:111122223333:g"}},
  {"index_key": "y", "attributes": {"id": "y", "name": "y", "arn": "arn:aws:autoscaling:eu-west-1:111122223333:g"}},
  {"index_key": "z", "deposed": "aa11", "attributes": {"id": "z", "name": "z"}}]},
 {"mode": "managed", "type": "aws_launch_template", "name": "web", "instances": [{"index_key": 0, "attributes": {"id": "lt-1", "name": "Web", "user_data": "c2VjcmV0", "region": "eu-west-1"}}]},
 {"mode": "managed", "type": "aws_launch_configuration", "name": "old", "instances": [{"attributes": {"id": "old-1", "name": "old-1", "arn": "arn:aws:autoscaling:us-east-1:111122223333:lc"}}]},
 {"mode": "managed", "type": "aws_eks_node_group", "name": "n", "instances": [{"attributes": {"id": "prod:n", "cluster_name": "prod", "node_group_name": "n", "arn": "arn:aws:eks:eu-west-1:111122223333:nodegroup/prod/n/u"}}]},
 {"mode": "data", "type": "aws_autoscaling_group", "name": "seen", "instances": [{"attributes": {"id": "seen", "name": "seen"}}]},
 {"mode": "managed", "type": "aws_vpc", "name": "v", "instances": [{"attributes": {"id": "vpc-1"}}]}]}`

func addresses(s State) string {
	var out []string
	for _, r := range s.Resources {
		out = append(out, r.Address()+"="+r.ID+"/"+r.InAWS+"@"+r.Region)
	}
	return strings.Join(out, "\n")
}

func TestRead(t *testing.T) {
	got, err := Read([]byte(state))
	if err != nil {
		t.Fatal(err)
	}
	want := `aws_autoscaling_group.web=web-1/web-1@eu-west-1
aws_eks_node_group.n=prod/n/n@eu-west-1
aws_launch_configuration.old=old-1/old-1@us-east-1
aws_launch_template.web[0]=lt-1/Web@eu-west-1
module.pool["a.b["].module.inner.aws_autoscaling_group.this["x]\""]=x/x@eu-west-1
module.pool["a.b["].module.inner.aws_autoscaling_group.this["y"]=y/y@eu-west-1`
	if addresses(got) != want {
		t.Errorf("got\n%s\nwant\n%s", addresses(got), want)
	}
	if here := got.In("111122223333", "eu-west-1"); len(here.Resources) != 5 || len(here.Names(LaunchConfiguration)) != 0 || strings.Join(here.Names(Nodegroup), ",") != "prod/n" {
		t.Errorf("in the region: %s", addresses(here))
	}
	if other := got.In("444455556666", "eu-west-1"); strings.Join(other.Names(LaunchTemplate), ",") != "Web" || len(other.Resources) != 1 {
		t.Errorf("in another account: %s", addresses(other))
	}
	if r := got.Elsewhere("eu-west-1"); len(r) != 1 || r[0] != "us-east-1" {
		t.Errorf("elsewhere: %v", r)
	}
}

func TestReadOfWhatTerraformShows(t *testing.T) {
	got, err := Read([]byte(`{"format_version":"1.0","values":{"root_module":{"resources":[{"mode":"managed","type":"aws_launch_template","name":"a","values":{"id":"lt-1","name":"a"}}],
	 "child_modules":[{"address":"module.m[0]","resources":[{"mode":"managed","type":"aws_autoscaling_group","name":"g","index":"k","values":{"id":"g","name":"g","arn":"arn:aws:autoscaling:eu-west-1:1:g"}},
	 {"mode":"data","type":"aws_autoscaling_group","name":"d","values":{"id":"d","name":"d"}}]}]}}}`))
	if err != nil || addresses(got) != "aws_launch_template.a=lt-1/a@\nmodule.m[0].aws_autoscaling_group.g[\"k\"]=g/g@eu-west-1" {
		t.Errorf("%v\n%s", err, addresses(got))
	}
	if got, err := Read([]byte(`{"format_version":"1.0"}`)); err != nil || len(got.Resources) != 0 { // what it shows of an empty state
		t.Errorf("%v %v", got, err)
	}
}

func TestReadSaysWhatToDo(t *testing.T) {
	for in, want := range map[string]string{
		`{"version":3,"backend":{"type":"s3","config":{"key":"secret-key"}}}`:  `backend of type "s3"`,
		`{"version":3,"modules":[]}`:                                           "version 3, and weir reads version 4",
		`{"serial":1,"encrypted_data":"eA=="}`:                                 "encrypted",
		`{"format_version":"1.2","planned_values":{},"resource_changes":[{}]}`: "a plan",
		`resource "aws_autoscaling_group" "secret" {}`:                         "not JSON",
		`[]`:                                 "not a Terraform state",
		`{}`:                                 "not a Terraform state",
		`{"version":4,"resources":"secret"}`: "not a Terraform state",
		"{\"version\":4,\"resources\":[{\"mode\":\"managed\",\"type\":\"aws_launch_template\",\"name\":\"a\\nsecret\",\"instances\":[{\"attributes\":{\"id\":\"lt\"}}]}]}": "whose name Terraform does not take",
	} {
		_, err := Read([]byte(in))
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || wrong.Do == "" || strings.Contains(err.Error()+wrong.Do, "secret") {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

// TestRemoved: a removed block is about all instances of a resource, so it stands only
// where all of them are taken.
func TestRemoved(t *testing.T) {
	s, err := Read([]byte(state))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Removed(func(r Resource) bool { return r.InAWS == "x" || r.ID == "lt-1" })
	want := `removed {
  from = aws_launch_template.web
  lifecycle {
    destroy = false
  }
}
# module.pool.module.inner.aws_autoscaling_group.this has 2 instances, and some of them stay, but a removed block applies to all.
# terraform state rm 'module.pool["a.b["].module.inner.aws_autoscaling_group.this["x]\""]'
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := s.Removed(func(Resource) bool { return true }); strings.Count(got, "removed {") != 5 || strings.Contains(got, "[") {
		t.Errorf("got\n%s", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(state)
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Read([]byte(in))
		if err != nil {
			return
		}
		for line := range strings.Lines(s.Removed(func(Resource) bool { return true })) {
			if utf8.ValidString(in) && strings.ContainsAny(strings.TrimSpace(line), "[]'\"`$") {
				t.Errorf("a block has %q", line)
			}
		}
	})
}
