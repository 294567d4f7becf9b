package plan

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

func TestNamesThatAWSDoesNotKnow(t *testing.T) {
	const wrapped = "You must use a valid fully-formed launch template. "
	infra := intent.ObjectRef{Kind: "AWSMachinePool", Namespace: "ns", Name: "p"}
	options := intent.ObjectRef{Kind: "PoolOptions", Namespace: "ns", Name: "p"}
	shared := intent.ObjectRef{Kind: "AWSLaunchConfigTemplate", Namespace: "ns", Name: "workers"}
	group := func(change func(*intent.Pool)) *intent.Pool {
		p := &intent.Pool{Infrastructure: infra, Options: options, LaunchTemplate: &intent.LaunchTemplate{}, Group: &intent.Group{}}
		if change != nil {
			change(p)
		}
		return p
	}
	for message, tt := range map[string]struct {
		pool  *intent.Pool
		want  string
		at    intent.ObjectRef
		field string
	}{
		wrapped + "Value (nodes) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name": {group(nil), "instance profile nodes", infra, "spec.awsLaunchTemplate.iamInstanceProfile"},
		"Value (arn:aws:iam::1:instance-profile/n) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile ARN": {
			group(func(p *intent.Pool) { p.LaunchConfig = &intent.LaunchConfig{Source: shared} }), "instance profile arn:aws:iam::1:instance-profile/n", shared, "spec.template.spec.iamInstanceProfile",
		},
		wrapped + "The key pair 'ops.pem' does not exist": {group(nil), "key pair ops.pem", infra, "spec.awsLaunchTemplate.sshKeyName"},
		"The key pair 'theirs' does not exist": {
			group(func(p *intent.Pool) {
				p.ForeignTemplate = &intent.ForeignTemplate{NameField: intent.Path{"metadata", "labels", "node.k8s.aws/launch-template-name"}}
			}), "key pair theirs", infra, intent.Path{"metadata", "labels", "node.k8s.aws/launch-template-name"}.String(),
		},
		"KeyPair  ops not found": {
			&intent.Pool{Infrastructure: infra, Nodegroup: &intent.Nodegroup{NodegroupSettings: intent.NodegroupSettings{RemoteAccess: &intent.RemoteAccess{EC2SSHKey: "ops"}}}}, "key pair ops", infra, "spec.remoteAccess.sshKeyName",
		},
		wrapped + "The security group 'sg-1' does not exist in VPC 'vpc-1'": {
			group(func(p *intent.Pool) { p.LaunchTemplate.Data.SecurityGroupIDs = []string{"sg-1"} }), "security group sg-1", infra, "spec.awsLaunchTemplate.additionalSecurityGroups",
		},
		"The security group 'sg-2' does not exist": {
			group(func(p *intent.Pool) {
				p.LaunchTemplate.Data.NetworkInterfaces = []intent.NetworkInterface{{Groups: []string{"sg-2"}}}
			}), "security group sg-2", options, "spec.launchTemplate.networkInterfaces",
		},
		"The security group 'sg-3' does not exist":        {group(nil), "security group sg-3", infra, ""}, // the network's, not the pool's
		wrapped + "The image id '[ami-1]' does not exist": {group(nil), "image ami-1", infra, "spec.awsLaunchTemplate.ami.id"},
		"The subnet ID 'subnet-1' does not exist":         {group(nil), "subnet subnet-1", infra, "spec.subnets"},
		"The role with name nodes cannot be found. (Service: AmazonIdentityManagement; Error Code: NoSuchEntity)": {
			&intent.Pool{Infrastructure: infra, Nodegroup: &intent.Nodegroup{}}, "role nodes", infra, "spec.roleName",
		},
		"The Placement Group 'close' is unknown.": {
			group(func(p *intent.Pool) { p.Group.Options.PlacementGroup = "close" }), "placement group close", options, "spec.autoScalingGroup.placementGroup",
		},
	} {
		u, ok := observed.FindUnknownName(message)
		if !ok || u.String() != tt.want {
			t.Errorf("%s: %q", message, u)
			continue
		}
		if at, field := u.Field(tt.pool); at != tt.at || field.String() != tt.field {
			t.Errorf("%s: %v %s, want %v %s", message, at, field, tt.at, tt.field)
		}
	}
	for _, other := range []string{
		"", wrapped + "The architecture 'arm64' of the specified instance type does not match", wrapped + "The specified launch template, with template ID lt-1, does not exist.",
		"AutoScalingGroup name not found - AutoScalingGroup 'web' not found",
	} {
		if u, ok := observed.FindUnknownName(other); ok {
			t.Errorf("%q: %v", other, u)
		}
	}
}

// A rollout that failed for a name is shown at its line as well.
func TestAFailureThatNamesAFieldHasItsPlace(t *testing.T) {
	pool := &intent.Pool{LaunchTemplate: &intent.LaunchTemplate{}, LaunchConfig: &intent.LaunchConfig{Source: intent.ObjectRef{Kind: "AWSLaunchConfig", Name: "a"}}}
	if at := observed.FieldNamed(pool, "The key pair 'a' does not exist"); at != nil {
		t.Errorf("another object's field: %v", at)
	}
	pool.LaunchConfig = nil
	if at := observed.FieldNamed(pool, "The key pair 'a' does not exist. Launching EC2 instance failed."); at.String() != "spec.awsLaunchTemplate.sshKeyName" {
		t.Errorf("the field: %v", at)
	}
}
