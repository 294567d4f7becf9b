package iampolicy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func wide() Scope {
	s := Scope{
		Partition: "aws", Account: "123456789012", Regions: []string{"eu-west-1", "us-east-1", "eu-west-1"}, Instance: "prod",
		KMSKeys: []string{"arn:aws:kms:eu-west-1:123456789012:key/k"}, SSMPrefixes: []string{"/weir/"}, Parameters: []string{"/images/web"}, Alarms: true, Drains: true, Adopt: true, From: "old",
		AssumeRoles: []string{"arn:aws:iam::123456789012:role/b", "arn:aws:iam::123456789012:role/a"},
	}
	s.Pass("arn:aws:iam::123456789012:role/nodes")
	s.pass("arn:aws:iam::123456789012:role/hooks", AutoScaling)
	return s
}

// TestOnlyWhatHasNoResourcesIsUnlimited keeps "*" to statements that say so.
func TestOnlyWhatHasNoResourcesIsUnlimited(t *testing.T) {
	for _, access := range []Access{Plan, Apply, Daemon} {
		for _, s := range Make(access, wide()).Statement {
			for _, r := range s.Resource {
				switch {
				case r == "*" && (len(s.Condition) == 0 || s.Sid != "ReadInRegions" && s.Sid != "LaunchFromTemplates"):
					t.Errorf("%s: %s is about everything", access, s.Sid)
				case r != "*" && (!strings.HasPrefix(r, "arn:aws:") || strings.Contains(r, "::123456789012:") && !strings.Contains(r, ":iam:")):
					t.Errorf("%s: %s: %s is not an ARN", access, s.Sid, r)
				}
			}
			for _, a := range s.Action {
				if strings.Contains(a, "*") {
					t.Errorf("%s: %s allows %s", access, s.Sid, a)
				}
				if access == Plan && !readsOnly(a) {
					t.Errorf("to plan, %s is allowed", a)
				}
			}
			if s.Effect != "Allow" || len(s.Action) == 0 || len(s.Resource) == 0 || strings.Trim(s.Sid, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != "" {
				t.Errorf("%s: %+v", access, s)
			}
		}
	}
}

func readsOnly(action string) bool {
	_, name, _ := strings.Cut(action, ":")
	return slices.ContainsFunc([]string{"Describe", "List", "Get", "Decrypt"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

func statement(t *testing.T, d Document, sid string) string {
	t.Helper()
	i := slices.IndexFunc(d.Statement, func(s Statement) bool { return s.Sid == sid })
	if i < 0 {
		return ""
	}
	text, err := json.Marshal(d.Statement[i])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestStatementsFollowTheScope(t *testing.T) {
	for sid, want := range map[string]string{
		"PassRolesToAutoscaling": `{"Sid":"PassRolesToAutoscaling","Effect":"Allow","Action":["iam:PassRole"],"Resource":["arn:aws:iam::123456789012:role/hooks"],"Condition":{"StringEquals":{"iam:PassedToService":["autoscaling.amazonaws.com"]}}}`,
		"PassRolesToEc2Eks":      `{"Sid":"PassRolesToEc2Eks","Effect":"Allow","Action":["iam:PassRole"],"Resource":["arn:aws:iam::123456789012:role/nodes"],"Condition":{"StringEquals":{"iam:PassedToService":["ec2.amazonaws.com","eks.amazonaws.com"]}}}`,
		"KeepJoinTokens":         `{"Sid":"KeepJoinTokens","Effect":"Allow","Action":["ssm:AddTagsToResource","ssm:DeleteParameter","ssm:PutParameter"],"Resource":["arn:aws:ssm:eu-west-1:123456789012:parameter/weir/*","arn:aws:ssm:us-east-1:123456789012:parameter/weir/*"]}`,
		"ReadImageParameters":    `{"Sid":"ReadImageParameters","Effect":"Allow","Action":["ssm:GetParameters"],"Resource":["arn:aws:ssm:eu-west-1:123456789012:parameter/images/web","arn:aws:ssm:eu-west-1::parameter/aws/service/*","arn:aws:ssm:us-east-1:123456789012:parameter/images/web","arn:aws:ssm:us-east-1::parameter/aws/service/*"]}`,
		"DecryptFilesInGit":      `{"Sid":"DecryptFilesInGit","Effect":"Allow","Action":["kms:Decrypt"],"Resource":["arn:aws:kms:eu-west-1:123456789012:key/k"]}`,
		"ReadNodeRoles":          `{"Sid":"ReadNodeRoles","Effect":"Allow","Action":["iam:GetInstanceProfile","iam:GetRole","iam:ListAttachedRolePolicies"],"Resource":["arn:aws:iam::123456789012:instance-profile/*","arn:aws:iam::123456789012:role/aws-service-role/eks-nodegroup.amazonaws.com/*","arn:aws:iam::123456789012:role/nodes"]}`,
	} {
		if got := statement(t, Make(Apply, wide()), sid); got != want {
			t.Errorf("%s:\nwant %s\ngot  %s", sid, want, got)
		}
	}
	narrow := Make(Apply, Scope{Partition: "aws", Account: "123456789012", Regions: []string{"eu-west-1"}, Instance: "prod"})
	for _, sid := range []string{"KeepJoinTokens", "ReadTagsOfJoinTokens", "DecryptFilesInGit", "PassRolesToEc2Eks", "AdoptGroupsWithoutOwner", "TakeOverGroups"} {
		if got := statement(t, narrow, sid); got != "" {
			t.Errorf("without need there is %s", got)
		}
	}
	if text, err := json.Marshal(narrow); err != nil || strings.Contains(string(text), "iam:PassRole") || strings.Contains(string(text), "ssm:DescribeParameters") || strings.Contains(string(text), "cloudwatch:") {
		t.Errorf("roles may be passed though none is known: %v", err)
	}
	want := `{"Sid":"AssumeRolesOfTargets","Effect":"Allow","Action":["sts:AssumeRole"],"Resource":["arn:aws:iam::123456789012:role/a","arn:aws:iam::123456789012:role/b"]}`
	if got := Make(Daemon, wide()); len(got.Statement) != 1 || statement(t, got, "AssumeRolesOfTargets") != want {
		t.Errorf("the daemon's: %+v", got)
	}
}

func TestPartitions(t *testing.T) {
	s := Scope{Partition: "aws-cn", Account: "123456789012", Regions: []string{"cn-north-1"}, Instance: "prod"}
	s.Pass("arn:aws-cn:iam::123456789012:role/nodes")
	if got := statement(t, Make(Apply, s), "PassRolesToEc2Eks"); !strings.Contains(got, "ec2.amazonaws.com.cn") {
		t.Errorf("in China EC2 has another name: %s", got)
	}
	for id, want := range map[string]string{"aws": "ec2.amazonaws.com", "aws-iso": "ec2.c2s.ic.gov", "aws-iso-b": "ec2.sc2s.sgov.gov", "aws-iso-e": "ec2.amazonaws.com", "aws-eusc": "ec2.amazonaws.com"} {
		if got := serviceIn(id, EC2); got != want {
			t.Errorf("EC2 in %s is %s, want %s", id, got, want)
		}
	}
	if got := statement(t, Make(Apply, s), "ChangeOwnTemplates"); !strings.Contains(got, "arn:aws-cn:ec2:cn-north-1:123456789012:launch-template/*") {
		t.Errorf("the partition of ARNs: %s", got)
	}
}

// TestAFleetFitsAnInlinePolicy keeps policies within what IAM takes.
func TestAFleetFitsAnInlinePolicy(t *testing.T) {
	if n := Make(Apply, wide()).Size(); n > inlineLimit {
		t.Errorf("the policy of two regions has %d characters", n)
	}
	one := wide()
	one.Regions, one.Adopt, one.From = []string{"eu-west-1"}, false, ""
	if n := Make(Apply, one).Size(); n > managedLimit {
		t.Errorf("the policy of one region has %d characters", n)
	}
}
