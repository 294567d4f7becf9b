package accounts

import (
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
)

// embedded is a set beside an embedded AWS, with its address.
func embedded(t *testing.T) (*Set, string) {
	t.Helper()
	emu, err := awsemu.New(awsemu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu)
	t.Cleanup(server.Close)
	return New(Options{Logger: slog.New(slog.DiscardHandler), Getenv: func(string) string { return "" }}), server.URL
}

// Nothing is deleted where targets may share an account and region by different roles,
// though one of the ways in does not answer: a role's name says whose it is.
func TestASharedAccountIsGuardedThoughOneWayInIsShut(t *testing.T) {
	const own, other = "arn:aws:iam::000000000000:role/", "arn:aws:iam::999999999999:role/"
	for name, tc := range map[string]struct {
		key   reconciler.ScopeKey
		whole bool
		told  int
	}{
		"another account":    {reconciler.ScopeKey{Region: "eu-west-1", RoleARN: other + "b"}, true, 0},
		"another region":     {reconciler.ScopeKey{Region: "eu-west-2", RoleARN: own + "b"}, true, 0},
		"the same account":   {reconciler.ScopeKey{Region: "eu-west-1", RoleARN: own + "b"}, false, 1},
		"configured so":      {reconciler.ScopeKey{Account: "000000000000", Region: "eu-west-1"}, false, 1},
		"nobody knows whose": {reconciler.ScopeKey{Region: "eu-west-1", RoleARN: "unheard-of"}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := embedded(t)
			batch := reconciler.Batch{
				Key: reconciler.ScopeKey{Region: "eu-west-1", Endpoint: url}, Targets: []reconciler.Desired{{Whole: true}}, AllTargets: true,
			}
			tc.key.Endpoint = url
			s.Open(t.Context(), batch.Key).Attach(&batch)
			s.Guard(&batch, slices.Values([]reconciler.ScopeKey{tc.key}))
			if d := batch.Targets[0]; d.Whole != tc.whole || len(d.Diagnostics) != tc.told || batch.AllTargets != tc.whole {
				t.Errorf("whole %t, strays %t, %v", d.Whole, batch.AllTargets, d.Diagnostics)
			}
		})
	}
}

// Scopes over which nobody passes any more are let go of; one that is wanted again is
// opened anew.
func TestScopesAreForgotten(t *testing.T) {
	s, url := embedded(t)
	regions := strings.Fields("eu-west-1 eu-west-2 eu-west-3 eu-central-1 eu-north-1 us-east-1 us-east-2 us-west-1 us-west-2 ap-southeast-2")
	key := func(i int) reconciler.ScopeKey {
		return reconciler.ScopeKey{Region: regions[i%10], Endpoint: url, Account: []string{"", "000000000000"}[i/10]}
	}
	for i := range 20 {
		if a := s.Open(t.Context(), key(i)); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if len(s.open) != 20 || len(s.answered) != 20 {
		t.Fatalf("%d are open, %d have answered", len(s.open), len(s.answered))
	}
	first := s.Open(t.Context(), key(0)).Scope
	for i := range 10 {
		s.Forget(key(i))
	}
	if len(s.open) != 10 || len(s.answered) != 10 {
		t.Errorf("%d are open, %d have answered", len(s.open), len(s.answered))
	}
	// A pass that was under way goes on.
	if _, err := first.Pass(t.Context(), nil, reconciler.PlanOnly); err != nil {
		t.Error(err)
	}
	if again := s.Open(t.Context(), key(0)); again.Err != nil || again.Scope == first {
		t.Errorf("opened again: %v", again.Err)
	}
	s.Keep(func(of reconciler.ScopeKey) bool { return of != key(10) && of != key(11) })
	if n := s.Opened(); n != 9 {
		t.Errorf("%d are open of 11, of which two are not wanted", n)
	}
	s.ForgetUnused(0)
	if n := len(s.open) + len(s.answered); n > 0 {
		t.Errorf("%d are left", n)
	}
}
