package reconciler

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/step"
)

// A token changes with every answer after the first few, and no other step has one.
func TestClientTokensAreRenewed(t *testing.T) {
	var c clientTokens
	version := step.CreateLaunchTemplateVersion{Token: "t"}
	for i, want := range []string{"t", "t", "t", "t-3", "t-4"} {
		got := c.fresh(version).(step.CreateLaunchTemplateVersion).Token
		if got != want {
			t.Errorf("after %d answers the token is %q, want %q", i, got, want)
		}
		c.answer(version.Token)
	}
	if got := c.fresh(step.CreateLaunchTemplateVersion{Token: "other"}).(step.CreateLaunchTemplateVersion).Token; got != "other" {
		t.Errorf("another token is %q", got)
	}
	if _, same := c.fresh(step.DeleteGroup{Name: "web"}).(step.DeleteGroup); !same {
		t.Error("another step is changed")
	}
}
