package app

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// reload makes a member work by what change makes of its configuration.
func (s *several) reload(m *member, name string, change func(*config.Config)) {
	s.t.Helper()
	before := m.gen.Load()
	s.change, s.reloads = change, name
	m.reloadDue.send()
	eventually(s.t, "the reload of "+name, func() string {
		if m.gen.Load() == before {
			return "there is none"
		}
		return ""
	})
}

// changed reads the configuration again, as it is after a change.
func (s *several) changed() (*config.Config, error) {
	c := s.settings(s.reloads)
	s.change(c)
	return c, nil
}

// ownerOf is the member that the engine names as a key's owner, empty for none.
func (s *several) ownerOf(key string) string {
	list, err := s.store.OwnersOf(context.Background(), []string{key})
	if err != nil || len(list) == 0 || list[0].Released {
		return ""
	}
	return list[0].Member
}

// unownedWrites notes the calls that arrive for a region that nobody owns.
type unownedWrites struct {
	mu    sync.Mutex
	calls []string
}

func (u *unownedWrites) watch(s *several, key func(region string) string) func(region, body string) {
	return func(region, body string) {
		form, err := url.ParseQuery(body)
		action := form.Get("Action")
		if err != nil || !strings.HasPrefix(action, "Create") && !strings.HasPrefix(action, "Update") && !strings.HasPrefix(action, "Delete") && !strings.HasPrefix(action, "Start") && !strings.HasPrefix(action, "Modify") {
			return
		}
		if s.ownerOf(key(region)) == "" {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.calls = append(u.calls, action+" in "+region)
		}
	}
}

func (u *unownedWrites) check(t *testing.T) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.calls) > 0 {
		t.Errorf("written where nobody owns the account and region: %v", u.calls)
	}
}

// begins notes the groups whose machines are to be replaced, and holds the first such call until go is closed.
type begins struct {
	starts
	once    sync.Once
	began   chan struct{}
	goes    chan struct{}
	release func()
}

func holdFirst() *begins {
	b := &begins{began: make(chan struct{}), goes: make(chan struct{})}
	b.release = sync.OnceFunc(func() { close(b.goes) })
	return b
}

func (b *begins) see(body string) {
	b.starts.see(body)
	if strings.Contains(body, "Action=StartInstanceRefresh") {
		b.once.Do(func() { close(b.began); <-b.goes })
	}
}

// A target moves to another region while a call of its rollout is under way. That call ends under the lease that it began with, and only then is the
// account and region released. Nobody owns it once all members have reloaded; whoever owns the new one applies there; nothing is deleted in the old one.
func TestAReloadMovesATargetWhileItRolls(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	old := s.scope()
	to := membership.ScopeKey("aws", "000000000000", "eu-west-2", s.url)
	s.extra = "- {name: second, path: overlays/second, region: eu-west-2}\n"
	s.give(map[string]string{to: "c"})
	s.load = s.changed
	rolls, writes := holdFirst(), &unownedWrites{}
	defer rolls.release()
	s.before = rolls.see
	s.signed = writes.watch(s, func(region string) string { return membership.ScopeKey("aws", "000000000000", region, s.url) })
	s.repo.Write(fleetOf("m5.large", "prod", "second"))
	first := s.repo.Commit("first")
	a, b, c := s.member("a"), s.member("b"), s.member("c")
	defer a.stop()
	defer b.stop()
	defer c.stop()
	for _, m := range []*member{a, b, c} {
		targetConverged(t, m.App, "prod", first)
		targetConverged(t, m.App, "second", first)
	}
	s.repo.Write(fleetOf("m6i.large", "prod"))
	second := s.repo.Commit("second")
	<-rolls.began
	moved := func(c *config.Config) { c.Targets[0].Region = "eu-west-2" }
	s.reload(b, "b", moved)
	eventually(t, "that b gives the region up", func() string {
		if b.member.Leases.Get(old) != nil {
			return "it does not"
		}
		return ""
	})
	if owner := s.ownerOf(old); owner != "b" {
		t.Errorf("%q owns the region while a call of b is under way", owner)
	}
	for key := range b.passes.memory.batches {
		if key.Region == "eu-west-1" {
			t.Errorf("%v is wanted still", key)
		}
	}
	rolls.release()
	// The others want it still, so one of them goes on until it has reloaded.
	eventually(t, "another owner", func() string {
		if owner := s.ownerOf(old); owner != "a" && owner != "c" {
			return "is " + owner
		}
		return ""
	})
	s.reload(a, "a", moved)
	s.reload(c, "c", moved)
	eventually(t, "that nobody owns the region", func() string { return s.ownerOf(old) })
	for _, m := range []*member{a, b, c} {
		targetConverged(t, m.App, "prod", second)
		eventually(t, "where the target is", func() string {
			if r, _ := m.current.Targets.Find("prod"); r.Last.Region != "eu-west-2" {
				return "in " + r.Last.Region
			}
			return ""
		})
	}
	if owner := s.ownerOf(to); owner != "c" {
		t.Errorf("%q owns the other region", owner)
	}
	if got := rolls.list(); !slices.Equal(got, []string{"prod-web"}) {
		t.Errorf("machines were replaced of %q", got)
	}
	if gone := s.deletes(); len(gone) > 0 {
		t.Errorf("deleted: %v", gone)
	}
	writes.check(t)
}

// A target is reached by another role while a call of its rollout is under way: the lease stays, the new role goes on with the same rollout once that
// call has ended.
func TestAReloadChangesARoleWhileATargetRolls(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	const account = "111122223333"
	key := membership.ScopeKey("aws", account, "eu-west-1", s.url)
	s.give(map[string]string{key: "b"})
	s.load = s.changed
	rolls, writes := holdFirst(), &unownedWrites{}
	defer rolls.release()
	s.before = rolls.see
	s.signed = writes.watch(s, func(string) string { return key })
	s.extra = "  roleARN: arn:aws:iam::" + account + ":role/one\n"
	s.repo.Write(fleetOf("m5.large", "prod"))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	s.owned(key, b)
	targetConverged(t, b.App, "prod", first)
	lease := b.member.Leases.Get(key)
	s.repo.Write(fleetOf("m6i.large", "prod"))
	second := s.repo.Commit("second")
	<-rolls.began
	two := func(c *config.Config) { c.Targets[0].RoleARN = "arn:aws:iam::" + account + ":role/two" }
	s.reload(b, "b", two)
	s.reload(a, "a", two)
	eventually(t, "the new role", func() string {
		b.passes.mu.Lock()
		defer b.passes.mu.Unlock()
		for of := range b.passes.loops.of {
			if strings.HasSuffix(of.RoleARN, "two") {
				return ""
			}
		}
		return "no pass is made by it"
	})
	rolls.release()
	for _, m := range []*member{a, b} {
		targetConverged(t, m.App, "prod", second)
	}
	if now := b.member.Leases.Get(key); now != lease {
		t.Errorf("owned by the lease %v, before by %v", now, lease)
	}
	if got := rolls.list(); !slices.Equal(got, []string{"prod-web"}) {
		t.Errorf("machines were replaced of %q", got)
	}
	if gone := s.deletes(); len(gone) > 0 {
		t.Errorf("deleted: %v", gone)
	}
	writes.check(t)
	eventually(t, "the end of the old role", func() string {
		b.passes.mu.Lock()
		defer b.passes.mu.Unlock()
		if len(b.passes.loops.of)+len(b.passes.loops.run) > 2 {
			return fmt.Sprintf("%d passes", len(b.passes.loops.run))
		}
		return ""
	})
}

// untold is a way to the engine that tells nobody by which configuration a member works after a reload, while it is so.
type untold struct {
	*coordtest.Memory
	is atomic.Bool
}

func (u *untold) Renew(ctx context.Context, session string, m *coord.Member) (time.Duration, error) {
	if u.is.Load() {
		m = nil
	}
	return u.Memory.Renew(ctx, session, m)
}

// An owner's first pass after a reload goes by the new configuration, of which the engine and the others do not know yet: it deletes nothing by it all
// the same, until the others have it too.
func TestAnOwnerThatReloadsFirstDeletesNothing(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.load = s.changed
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3), "batch": pool("batch", "m5.large", 3)}))
	s.repo.Write(map[string]string{"overlays/less/kustomization.yaml": "resources: [web.yaml]\n", "overlays/less/web.yaml": pool("web", "m5.large", 3)})
	first := s.repo.Commit("first")
	way := &untold{Memory: s.store}
	a, b := s.member("a"), s.memberOver("b", way)
	defer a.stop()
	defer b.stop()
	converged(t, b.App, first, 2)
	way.is.Store(true)
	less := func(c *config.Config) { c.Targets[0].Path = "overlays/less" }
	s.reload(b, "b", less)
	eventually(t, "what is kept", func() string {
		r, _ := b.current.Targets.Find("prod")
		if r.Last == nil || r.Last.Plan == nil || len(r.Last.Pools) > 1 {
			return fmt.Sprintf("%+v", r.Last)
		}
		for _, d := range r.Last.Plan.Diagnostics {
			if d.Code == "orphan-kept" && strings.Contains(d.Summary, "the configuration of the member a differs in targets") {
				return ""
			}
		}
		return fmt.Sprintf("%+v", r.Last.Plan.Diagnostics)
	})
	if gone := s.deletes(); len(gone) > 0 {
		t.Errorf("deleted by a configuration that one member has alone: %v", gone)
	}
	way.is.Store(false)
	s.reload(a, "a", less)
	eventually(t, "the deletion once both have the same", func() string {
		if n := s.aws.CallCounts()["ec2:DeleteLaunchTemplate"]; n != 1 {
			return fmt.Sprint(n)
		}
		return ""
	})
}
