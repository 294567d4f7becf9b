package fleet

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
)

// User data that takes the place of one with secrets shows no parts; the set that renders
// share stays as it is.
func TestUserDataInPlaceOfSecretsIsConcealed(t *testing.T) {
	set := func(mark string) *intent.Set {
		return &intent.Set{Pools: []intent.Pool{{Key: intent.Key{Name: "web"}, LaunchTemplate: &intent.LaunchTemplate{UserData: intent.UserData{Text: "x", Mark: mark}}}, {Key: intent.Key{Name: "without"}}}}
	}
	for name, tc := range map[string]struct {
		base, proposed string
		renamed, want  bool
	}{"in place of a secret": {"m", "", false, true}, "with a secret": {"m", "n", false, false}, "without any": {"", "", false, false},
		"in place of a secret, renamed": {"m", "", true, true}, "without any, renamed": {"", "", true, false}} {
		shared, base := set(tc.proposed), set(tc.base)
		if tc.renamed {
			base.Pools[0].Key.Name = "earlier"
		}
		d := &reconciler.Desired{Set: shared, Base: base}
		b := &Base{fleet: &Fleet{followed: map[string]*build{"other": {result: &render.Kept{Set: *base}}, "broken": {}}}}
		b.conceal(d)
		if d.Base = nil; tc.renamed {
			b.conceal(d) // of a target that is new
		}
		if got := d.Set.Pools[0].LaunchTemplate.UserData.Concealed; got != tc.want || shared.Pools[0].LaunchTemplate.UserData.Concealed {
			t.Errorf("%s: %v", name, got)
		}
	}
}
