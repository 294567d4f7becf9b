package awscloud_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awsemu/model/modeltest"
	"github.com/weir-gitops/weir/reconciler/step"
)

// TestWrongRequestsAreSeen plants requests that AWS's models do not have: the check
// of every request, which package checked puts into all tests, sees them.
func TestWrongRequestsAreSeen(t *testing.T) {
	var wrong []string
	usual := sdk.Around
	t.Cleanup(func() { sdk.Around = usual })
	sdk.Around = func(next httpbody.Doer) httpbody.Doer {
		return &modeltest.Client{Next: next, Request: func(err error) { wrong = append(wrong, err.Error()) }}
	}
	e := start(t)
	if len(wrong) > 0 {
		t.Fatalf("opening is wrong: %v", wrong)
	}
	nodegroup := createNodegroup(e, "n")
	nodegroup.Nodegroup.AMIType = "NEVER"
	for want, do := range map[string]step.Action{"amiType": nodegroup, "LaunchTemplateName": step.CreateLaunchTemplate{Name: strings.Repeat("x", 129)}} {
		wrong = nil
		if _, err := e.cloud.Execute(context.Background(), do); err == nil {
			t.Errorf("%T is accepted", do)
		}
		if !strings.Contains(strings.Join(wrong, "\n"), want) {
			t.Errorf("%T: %v is seen, want %s", do, wrong, want)
		}
	}
}
