package app

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/source/transport"
)

// several are daemons of one instance over one engine.
type several struct {
	*world
	store *coordtest.Memory
	keys  []string
	// load reads the configuration again, that of the member whose name is reloads.
	load    func() (*config.Config, error)
	reloads string
	// change is what changed makes of it.
	change func(*config.Config)
	// poll is the time between two looks at Git; 0 for that of every test.
	poll time.Duration
	// rest is the time between two passes that change nothing; 0 for that of every test.
	rest time.Duration
	// listen is the next member's, of a port that it can tell others; empty as in every test.
	listen string
	// hooks has members look at Git and at pull requests when a webhook says so.
	hooks bool
}

// newSeveral has member a speak for the source, and member b apply, as long as they live.
func newSeveral(t testing.TB) *several {
	t.Helper()
	return newSeveralOn(t, quickAWS())
}

func newSeveralOn(t testing.TB, o awsemu.Options) *several {
	t.Helper()
	s := &several{world: newWorld(t, o), store: coordtest.NewMemory()}
	s.keys = []string{membership.SourceKey(transport.ID(s.repo.URL())), membership.ScopeKey("aws", "000000000000", "eu-west-1", s.url)}
	s.give(map[string]string{s.keys[0]: "a", s.keys[1]: "b"})
	return s
}

// give has members own keys, as long as they live. Nobody knows of an owner in an empty engine,
// so the first one would wait for a lease that somebody may have: these keys were released.
func (s *several) give(owners map[string]string) {
	s.t.Helper()
	s.giveIn(s.store, owners)
}

func (s *several) giveIn(store coord.Store, owners map[string]string) {
	s.t.Helper()
	e := coord.New(store, coord.Options{})
	m, err := e.Join(s.t.Context(), coord.Member{Name: "before"}, coord.TTL)
	for key, name := range owners {
		var o coord.Owner
		if err == nil {
			o, err = m.Take(s.t.Context(), key, coord.Owner{})
		}
		if err == nil {
			err = m.Release(s.t.Context(), o)
		}
		op := coord.Op{Key: "coord/pin/" + key, Value: []byte(`{"member":"` + name + `"}`), If: coord.Any}
		if err == nil {
			_, err = m.Write(s.t.Context(), coord.Write{Ops: []coord.Op{op}})
		}
	}
	if err = errors.Join(err, m.Leave(s.t.Context())); err != nil {
		s.t.Fatal(err)
	}
}

// member is one of them.
type member struct {
	*App
	stop func()
}

// settings are those of a member, in a directory of its own with the keys of all.
func (s *several) settings(name string) *config.Config {
	s.t.Helper()
	c := s.config()
	if s.hooks {
		c = s.hooked()
	}
	c.StateDir = filepath.Join(s.dir, name)
	c.Listen = cmp.Or(s.listen, c.Listen)
	if s.poll != 0 {
		c.Sources[0].Interval = s.poll
	}
	if s.rest != 0 {
		c.Interval = s.rest
	}
	key := filepath.Join(c.StateDir, "digest.key")
	if err := errors.Join(os.MkdirAll(c.StateDir, 0o700), os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600)); err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *several) member(name string) *member {
	s.t.Helper()
	return s.memberOver(name, s.store)
}

// memberOver reaches the engine by a way of its own.
func (s *several) memberOver(name string, store coord.Store) *member {
	s.t.Helper()
	s.engine, s.name = coord.New(store, coord.Options{}), name
	defer func() { s.engine, s.name = nil, "" }()
	a, stop := s.startConfig(s.settings(name), s.load)
	return &member{a, sync.OnceFunc(stop)}
}

// owned waits until a member owns a key.
func (s *several) owned(key string, m *member) (o coord.Owner) {
	s.t.Helper()
	eventually(s.t, "the owner of "+key, func() string {
		lease := m.member.Leases.Get(key)
		if lease == nil {
			return "it does not own it"
		}
		o = lease.Owner
		return ""
	})
	return o
}

// commented waits until weir's comment on a pull request shows a plan: none is approved by a
// comment that was there before.
func (s *several) commented(number int) {
	s.t.Helper()
	eventually(s.t, "the comment", func() string {
		if told := s.forge.told(number); len(told) == 0 || !strings.Contains(told[0], "weir approve") {
			return fmt.Sprintf("told %q", told)
		}
		return ""
	})
}

// approved waits until a member knows an approval that a comment gave.
func (s *several) approved(m *member, number int) {
	s.t.Helper()
	eventually(s.t, "the approval", func() string {
		all := m.recorder.Read().Approvals
		if !slices.ContainsFunc(all, func(a gates.Approval) bool { return a.From != "" }) {
			return fmt.Sprintf("there are %v; told on the pull request: %q", all, s.forge.told(number))
		}
		return ""
	})
}

func (s *several) scope() string  { return s.keys[1] }
func (s *several) source() string { return s.keys[0] }

// One member owns the account and region and applies; the other shows the same, and goes on
// when the first one stops.
func TestAnotherMemberTakesOver(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	s.owned(s.scope(), b)
	for _, m := range []*member{a, b} {
		converged(t, m.App, first, 1)
	}
	if n := s.aws.CallCounts()["autoscaling:CreateAutoScalingGroup"]; n != 1 {
		t.Errorf("the group was made %d times: %v", n, s.writes())
	}
	a.passes.mu.Lock()
	passes := a.passes.loops.any(a.passes.memory.scopesOf("prod")) || len(a.passes.loops.run) > 0
	a.passes.mu.Unlock()
	if passes {
		t.Error("a member passes over resources of another one")
	}
	began := time.Now()
	b.stop()
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := s.repo.Commit("second")
	converged(t, a.App, second, 1)
	t.Logf("the other member had applied a commit %s after the first one was told to stop", time.Since(began))
	if got := s.query("autoscaling", "DescribeAutoScalingGroups"); !strings.Contains(got, "<MaxSize>4</MaxSize>") {
		t.Errorf("AWS has %s", got)
	}
	told := 0
	for _, e := range a.current.Activity.Events() {
		if e.Kind == "group-created" {
			told++
		}
	}
	if told > 1 {
		t.Errorf("that the group was made is told %d times", told)
	}
}

// Whichever member is asked, none writes to a suspended target, and all follow the resumption.
func TestASuspensionOnOneMemberHoldsAnother(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	converged(t, b.App, first, 1)
	if _, err := a.recorder.Suspend(gates.Suspension{Target: "prod", Reason: "incident", By: "somebody"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.aws.ResetCalls()
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	second := s.repo.Commit("second")
	for _, m := range []*member{a, b} {
		eventually(t, "the plan that is held", func() string {
			r, _ := m.current.Targets.Find("prod")
			if r.Last == nil || r.Last.Revision != second || r.Last.Plan == nil || r.Last.Plan.Runnable() > 0 || r.Last.Plan.Empty() {
				return fmt.Sprintf("%+v", r.Last)
			}
			return ""
		})
	}
	if wrote := s.writes(); len(wrote) > 0 {
		t.Errorf("written while suspended: %v", wrote)
	}
	if _, err := a.recorder.Resume("prod", "", false); err != nil {
		t.Fatal(err)
	}
	converged(t, b.App, second, 1)
}

// A pass that began before somebody suspended its target writes nothing more once that is
// known: not even the next step of a pool.
func TestASuspensionHoldsTheNextWriteOfAPass(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	var a, b *member
	var armed atomic.Bool
	s.before = func(body string) {
		if strings.Contains(body, "Action=CreateLaunchTemplateVersion") && armed.CompareAndSwap(true, false) {
			_, err := a.recorder.Suspend(gates.Suspension{Target: "prod", Reason: "incident", By: "somebody"}, time.Hour)
			if err = errors.Join(err, b.member.Mirror.Sync(context.Background())); err != nil {
				t.Error(err)
			}
		}
	}
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b = s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	converged(t, b.App, first, 1)
	s.aws.ResetCalls()
	armed.Store(true)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.xlarge", 3)}))
	second := s.repo.Commit("second")
	eventually(t, "the plan that is held", func() string {
		r, _ := b.current.Targets.Find("prod")
		if r.Last == nil || r.Last.Revision != second || !r.Last.Suspended || r.Last.Plan == nil || r.Last.Plan.Empty() {
			return fmt.Sprintf("%+v", r.Last)
		}
		return ""
	})
	if wrote := s.writes(); !slices.Equal(wrote, []string{"CreateLaunchTemplateVersion"}) {
		t.Errorf("written: %v", wrote)
	}
	for key := range b.passes.memory.batches {
		place, _ := placeOf(b.accounts, key)
		if err := a.passes.fence(key).MayBegin(); err == nil && s.ownerOf(place) != "a" {
			t.Error("a member that does not own the region may write")
		}
	}
}

// A comment is read by the member that speaks for the source, and what it approves runs on
// the one that owns the account.
func TestAnApprovalByCommentThatReachesOneMemberRunsOnAnother(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.extra = "  apply: as-reviewed\n"
	s.forge.levels["reviewer"] = "write"
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	eventually(t, "the first plan", func() string {
		if r, _ := a.current.Targets.Find("prod"); r.Last == nil || r.Last.Plan == nil || r.Last.Plan.Empty() {
			return "there is no plan"
		}
		return ""
	})
	r, _ := a.current.Targets.Find("prod")
	if _, err := a.recorder.Approve(r.Last.Plan.Digest(), "somebody"); err != nil {
		t.Fatal(err)
	}
	converged(t, b.App, first, 1)
	head := s.propose(1, overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	s.told(head, "fleet/plan", "success", "")
	s.commented(1)
	s.forge.say(1, "reviewer", "weir approve")
	s.approved(b, 1)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	merge := s.repo.Commit("merge")
	for _, m := range []*member{b, a} {
		converged(t, m.App, merge, 1)
	}
	if got := s.query("autoscaling", "DescribeAutoScalingGroups"); !strings.Contains(got, "<MaxSize>5</MaxSize>") {
		t.Errorf("AWS has %s", got)
	}
}

var errCut = &coord.AwayError{Err: errors.New("no route to host")}

// A reload changes nothing of what is owned, and who speaks goes on.
func TestAReloadKeepsWhatIsOwned(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	s.load = func() (*config.Config, error) { return s.settings(s.reloads), nil }
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	converged(t, b.App, first, 1)
	s.told(first, "fleet/apply", "success", "")
	leases := []*coord.Lease{a.member.Leases.Get(s.source()), b.member.Leases.Get(s.scope())}
	for _, m := range []*member{a, b} {
		before := m.gen.Load()
		s.reloads = filepath.Base(before.config.StateDir)
		m.reloadDue.send()
		eventually(t, "the reload", func() string {
			if m.gen.Load() == before {
				return "there is none"
			}
			return ""
		})
	}
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := s.repo.Commit("second")
	s.told(second, "fleet/apply", "success", "1 pool updated")
	if got := []*coord.Lease{a.member.Leases.Get(s.source()), b.member.Leases.Get(s.scope())}; !slices.Equal(got, leases) {
		t.Errorf("owned by leases %v, before by %v", got, leases)
	}
}
