package model

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/step"
)

func TestReasonsDoNotCutARNs(t *testing.T) {
	for want, c := range map[string]step.Change{
		"iamInstanceProfile arn:aws:iam::1:role/a → arn:aws:iam::1:role/b": {Field: "awsLaunchTemplate.iamInstanceProfile", From: "arn:aws:iam::1:role/a", To: "arn:aws:iam::1:role/b"},
		"iamInstanceProfile changes": {
			Field: "awsLaunchTemplate.iamInstanceProfile", From: "arn:aws:iam::123456789012:instance-profile/reader", To: "arn:aws:iam::123456789012:instance-profile/admin",
		},
		"description a text that has more than the forty cha… → (none)": {Field: "description", From: "a text that has more than the forty characters"},
	} {
		if got := ChangeWords([]step.Change{c}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
