package fleet

import "testing"

// What a review does with an account and region follows from the targets there and from
// whether the author of the proposal is trusted.
func TestScopesOfAReview(t *testing.T) {
	var (
		touches         = member{touched: true}
		touchesRoleless = member{touched: true, roleless: true}
		beside          = member{}
		besideRoleless  = member{roleless: true}
	)
	for name, tc := range map[string]struct {
		members   []member
		untrusted bool
		want      scope
	}{
		"no targets": {nil, false, untouched},
		"a target that the proposal does not touch":          {[]member{beside}, false, untouched},
		"the same, of an author whom nobody trusts":          {[]member{besideRoleless}, true, untouched},
		"one touched target of two":                          {[]member{beside, touches}, false, planned},
		"a touched target without a role, trusted":           {[]member{touchesRoleless}, false, planned},
		"a touched target with a role, not trusted":          {[]member{touches}, true, planned},
		"a touched target without a role, not trusted":       {[]member{touchesRoleless, besideRoleless}, true, closed},
		"no role of its own, but one beside it, not trusted": {[]member{touchesRoleless, beside}, true, planned},
	} {
		if got := scopeOf(tc.members, tc.untrusted); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
