package awsemu_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func TestCallerIdentity(t *testing.T) {
	e := start(t, awsemu.Options{})
	got := must(e.sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))(t)
	if aws.ToString(got.Account) != "000000000000" || aws.ToString(got.Arn) != "arn:aws:iam::000000000000:user/emulator" {
		t.Errorf("identity = %s %s", aws.ToString(got.Account), aws.ToString(got.Arn))
	}
}

func TestAssumeRoleLeadsIntoAnotherAccount(t *testing.T) {
	e := start(t, awsemu.Options{})
	assume := func(arn string) (*sts.AssumeRoleOutput, error) {
		return e.sts().AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: aws.String(arn), RoleSessionName: aws.String("weir")})
	}
	out := must(assume("arn:aws:iam::123456789012:role/deploy"))(t)
	key := aws.ToString(out.Credentials.AccessKeyId)
	if want := epoch.Add(time.Hour); !out.Credentials.Expiration.Equal(want) {
		t.Errorf("expires %v, want %v", out.Credentials.Expiration, want)
	}
	who := must(e.as(key).sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))(t)
	if got, want := aws.ToString(who.Arn), "arn:aws:sts::123456789012:assumed-role/deploy/weir"; got != want {
		t.Errorf("arn = %s, want %s", got, want)
	}

	_, err := assume("arn:aws:iam::000000000000:role/nobody")
	wantCode(t, err, "AccessDenied")
	must(assume("arn:aws:iam::000000000000:role/controllers.cluster-api-provider-aws.sigs.k8s.io"))(t)

	e.advance(time.Hour)
	_, err = e.as(key).sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	wantCode(t, err, "ExpiredToken")
	_, err = e.as("ASIAEMU0000000000000").sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	wantCode(t, err, "InvalidClientTokenId")
}

func TestIAMReads(t *testing.T) {
	e := start(t, awsemu.Options{})
	name := "nodes.cluster-api-provider-aws.sigs.k8s.io"
	role := must(e.iam().GetRole(ctx, &iam.GetRoleInput{RoleName: &name}))(t)
	if got, want := aws.ToString(role.Role.Arn), "arn:aws:iam::000000000000:role/"+name; got != want {
		t.Errorf("role arn = %s, want %s", got, want)
	}
	profile := must(e.iam().GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name}))(t)
	if len(profile.InstanceProfile.Roles) != 1 || aws.ToString(profile.InstanceProfile.Roles[0].RoleName) != name {
		t.Errorf("profile roles = %v", profile.InstanceProfile.Roles)
	}
	_, err := e.iam().GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("absent")})
	wantCode(t, err, "NoSuchEntity")
}
