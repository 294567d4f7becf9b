package app

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/plan"
)

// A target that was reached by a role is reached by the process's own credentials after a reload. Until AWS has said which account these are of, its
// owner keeps the account and region; and what was opened for nothing is closed.
func TestAnOwnerKeepsWhatItsOwnCredentialsMayReach(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.load = s.changed
	s.extra = "  roleARN: arn:aws:iam::000000000000:role/nodes.cluster-api-provider-aws.sigs.k8s.io\n"
	var armed atomic.Bool
	asked, answer := make(chan struct{}, 100), make(chan struct{})
	defer func() {
		if armed.Load() {
			close(answer)
		}
	}()
	s.before = func(body string) {
		if armed.Load() && strings.Contains(body, "Action=GetCallerIdentity") {
			asked <- struct{}{}
			<-answer
		}
	}
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	converged(t, b.App, first, 1)
	s.owned(s.scope(), b)
	lease := b.member.Leases.Get(s.scope())
	armed.Store(true)
	own := func(c *config.Config) { c.Targets[0].RoleARN = "" }
	s.reload(b, "b", own)
	<-asked
	wants := func(m *member, key string) bool {
		return slices.ContainsFunc(m.peers.keys(), func(of coord.Scope) bool { return of.Key == key })
	}
	if !wants(b, s.scope()) {
		t.Error("it gives up what it owns while it does not know its account")
	}
	armed.Store(false)
	close(answer)
	s.reload(a, "a", own)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := s.repo.Commit("second")
	for _, m := range []*member{a, b} {
		converged(t, m.App, second, 1)
	}
	if now := b.member.Leases.Get(s.scope()); now != lease || lease == nil {
		t.Errorf("owned by the lease %v, before by %v", now, lease)
	}

	// A member that owns nothing there has opened it to find the account out, and closes it once no target leads there.
	eventually(t, "the account, found by a", func() string {
		if n := a.accounts.Opened(); n != 1 {
			return fmt.Sprintf("%d are open", n)
		}
		return ""
	})
	s.reload(a, "a", func(c *config.Config) {
		c.Targets[0].RoleARN = "arn:aws:iam::000000000000:role/control-plane.cluster-api-provider-aws.sigs.k8s.io"
	})
	eventually(t, "the end of what is open for nothing", func() string {
		if n := a.accounts.Opened(); n != 0 {
			return fmt.Sprintf("%d are open", n)
		}
		return ""
	})
}

// A report that comes late, from another account or region than its target is in by now, is dropped; while the account is not known, the region alone
// tells.
func TestALateReportOfAnotherPlaceIsDropped(t *testing.T) {
	t.Parallel()
	const role = "arn:aws:iam::111122223333:role/one"
	for name, tc := range map[string]struct {
		keys   []reconciler.ScopeKey
		report plan.Report
		moved  bool
	}{
		"where it is":                {[]reconciler.ScopeKey{{Region: "eu-west-1", RoleARN: role}}, plan.Report{Region: "eu-west-1", Account: "111122223333"}, false},
		"another region":             {[]reconciler.ScopeKey{{Region: "eu-west-1", RoleARN: role}}, plan.Report{Region: "eu-west-2", Account: "111122223333"}, true},
		"another account":            {[]reconciler.ScopeKey{{Region: "eu-west-1", RoleARN: role}}, plan.Report{Region: "eu-west-1", Account: "444455556666"}, true},
		"an account nobody knows":    {[]reconciler.ScopeKey{{Region: "eu-west-1"}}, plan.Report{Region: "eu-west-1", Account: "444455556666"}, false},
		"a report without account":   {[]reconciler.ScopeKey{{Region: "eu-west-1", RoleARN: role}}, plan.Report{Region: "eu-west-1"}, false},
		"unknown, in another region": {[]reconciler.ScopeKey{{Region: "eu-west-1"}}, plan.Report{Region: "eu-west-2"}, true},
		"one of two places":          {[]reconciler.ScopeKey{{Region: "eu-west-1", RoleARN: role}, {Region: "eu-west-2", RoleARN: role}}, plan.Report{Region: "eu-west-2", Account: "111122223333"}, false},
		"nothing is composed":        {nil, plan.Report{Region: "eu-west-2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			known, m := accounts.New(accounts.Options{Logger: slog.New(slog.DiscardHandler)}), memory{}
			m.batches, m.scopes = map[reconciler.ScopeKey]reconciler.Batch{}, map[string][]reconciler.ScopeKey{"prod": tc.keys}
			for _, key := range tc.keys {
				d := reconciler.Desired{}
				d.Policy.Target = "prod"
				m.batches[key] = reconciler.Batch{Key: key, Targets: []reconciler.Desired{d}}
			}
			tc.report.Target = "prod"
			if got := m.moved(&tc.report, known.Probably); got != tc.moved {
				t.Errorf("dropped: %v, want %v", got, tc.moved)
			}
		})
	}
}
