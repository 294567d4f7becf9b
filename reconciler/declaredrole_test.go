package reconciler_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render/diag"
)

// TestARoleIsComparedWithItsDeclaration: a policy that the role does not have is a warning at
// its line, with the command that attaches it. It holds nothing, comes in a pass without
// changes too, and goes once somebody has run the command.
func TestARoleIsComparedWithItsDeclaration(t *testing.T) {
	w := newWorld(t)
	const role, policy = "nodes.cluster-api-provider-aws.sigs.k8s.io", "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
	text := strings.NewReplacer("AWSMachinePool", "AWSManagedMachinePool", "  minSize: 0\n  maxSize: 10\n", "", "v1.33.0", "v1.34.0").Replace(
		writtenText("ng", "", "amiType: AL2023_x86_64_STANDARD\nroleName: "+role+"\nroleAdditionalPolicies:\n- "+policy+"\nscaling: {minSize: 1, maxSize: 4}"))
	d := w.written(text)
	differs := func() diag.List {
		r := w.must(reconciler.Apply, d)[0]
		return slices.DeleteFunc(slices.Clone(r.Diagnostics), func(d diag.Diagnostic) bool { return d.Code != "role-differs" })
	}
	w.settle(d)
	command := "aws iam attach-role-policy --role-name " + role + " --policy-arn " + policy
	found, lines := differs(), strings.Split(text, "\n")
	if len(found) != 1 || found[0].Severity != diag.Warning || !strings.Contains(found[0].Summary, command) ||
		found[0].Line == 0 || !strings.Contains(lines[found[0].Line-1], "roleAdditionalPolicies") && !strings.Contains(lines[found[0].Line-1], policy) {
		t.Fatalf("found %v", found)
	}
	if _, err := iam.NewFromConfig(w.sdk).AttachRolePolicy(context.Background(), &iam.AttachRolePolicyInput{RoleName: aws.String(role), PolicyArn: aws.String(policy)}); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(11 * time.Minute)
	if found := differs(); len(found) > 0 {
		t.Errorf("still %v", found)
	}
}
