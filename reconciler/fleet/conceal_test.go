package fleet

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler"
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
		want           bool
	}{"in place of a secret": {"m", "", true}, "with a secret": {"m", "n", false}, "without any": {"", "", false}} {
		shared := set(tc.proposed)
		d := &reconciler.Desired{Set: shared, Base: set(tc.base)}
		conceal(d)
		if got := d.Set.Pools[0].LaunchTemplate.UserData.Concealed; got != tc.want || shared.Pools[0].LaunchTemplate.UserData.Concealed {
			t.Errorf("%s: %v", name, got)
		}
	}
}
