package app

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/wording"
)

// holds lets calls wait before AWS has them, the first of each kind: a drain finds them under way.
type holds struct {
	starts
	mu    sync.Mutex
	calls map[string]*hold
}

type hold struct {
	once    sync.Once
	came    chan struct{}
	goes    chan struct{}
	release func()
}

// on holds the first call of an action, with a text in it.
func (h *holds) on(action, text string) *hold {
	one := &hold{came: make(chan struct{}), goes: make(chan struct{})}
	one.release = sync.OnceFunc(func() { close(one.goes) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls == nil {
		h.calls = map[string]*hold{}
	}
	h.calls[action+" "+text] = one
	return one
}

func (h *holds) see(body string) {
	h.starts.see(body)
	form, err := url.ParseQuery(body)
	if err != nil {
		return
	}
	var found *hold
	h.mu.Lock()
	for name, one := range h.calls {
		if action, text, _ := strings.Cut(name, " "); form.Get("Action") == action && strings.Contains(body, text) {
			found = one
		}
	}
	h.mu.Unlock()
	if found != nil {
		found.once.Do(func() { close(found.came); <-found.goes })
	}
}

// drain has a member drain, asked by another one. A call of it waits until it does.
func (s *several) drain(t *testing.T, by, m *member, under *hold) {
	t.Helper()
	go func() {
		defer under.release()
		for t.Context().Err() == nil && !m.member.Keeper.View().Member.Draining {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if out := by.post(t, commands.DrainPath, commands.Move{Member: m.member.Name}); !out.Followed || out.Left != 0 {
		t.Errorf("the drain of %s: %+v", m.member.Name, out)
	}
}

// succeedsOnce waits until a commit succeeds, without a word of failure and without saying so twice.
func (s *several) succeedsOnce(sha string, contexts ...string) {
	s.t.Helper()
	for _, context := range contexts {
		s.told(sha, context, "success", "")
		if states := s.forge.states(sha, context); !succeeded(states) {
			s.t.Errorf("%s of %s went through %s", context, wording.Short(sha), states)
		}
	}
}

// A member drains in the middle of a rollout, whatever call of it is under way: the next owner goes on with what AWS has by then. Nothing is done twice.
func TestADrainInARollout(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"CreateLaunchTemplateVersion", "StartInstanceRefresh", "ModifyLaunchTemplate"} {
		t.Run(action, func(t *testing.T) {
			s := newSeveral(t)
			var calls holds
			s.before = calls.see
			under := calls.on(action, "")
			defer under.release()
			s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
			first := s.repo.Commit("first")
			a, b := s.member("a"), s.member("b")
			defer a.stop()
			defer b.stop()
			converged(t, a.App, first, 1)
			s.aws.ResetCalls()
			s.repo.Write(overlay(map[string]string{"web": pool("web", "m6i.large", 3)}))
			second := s.repo.Commit("second")
			<-under.came
			s.drain(t, a, b, under)
			for _, m := range []*member{a, b} {
				converged(t, m.App, second, 1)
			}
			if got, want := s.writes(), []string{"CreateLaunchTemplateVersion", "StartInstanceRefresh", "ModifyLaunchTemplate"}; !slices.Equal(got, want) {
				t.Errorf("written: %v, want %v", got, want)
			}
			s.succeedsOnce(second, "fleet/apply", "fleet/apply/prod")
		})
	}
}

// The member that conducts a FleetRollout drains while the canary rolls, then an owner while the next wave does. The record goes on where it was: the
// waves keep their order, and no pool is rolled twice.
func TestDrainsInAFleetRollout(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.extra = otherTargets
	s.give(map[string]string{membership.ScopeKey("aws", "000000000000", "eu-west-2", s.url): "c"})
	var calls holds
	s.before = calls.see
	canary, next := calls.on("StartInstanceRefresh", "third-web"), calls.on("StartInstanceRefresh", "second-web")
	defer canary.release()
	defer next.release()
	spec := "  waves:\n  - name: canary\n    selector: {targets: [third]}\n  - name: next\n    selector: {targets: [second]}\n"
	s.repo.Write(inWaves("m5.large", spec))
	first := s.repo.Commit("first")
	a, b, c := s.member("a"), s.member("b"), s.member("c")
	defer a.stop()
	defer b.stop()
	defer c.stop()
	targets := []string{"prod", "second", "third"}
	for _, target := range targets {
		targetConverged(t, a.App, target, first)
	}
	run := func(m *member) rollout.Run {
		t.Helper()
		record, err := m.rollouts.ledger.Read("pools")
		if err != nil || len(record.Runs) != 1 {
			t.Fatalf("%+v, %v", record, err)
		}
		return record.Runs[0]
	}
	s.repo.Write(inWaves("m6i.large", spec))
	second := s.repo.Commit("second")

	<-canary.came
	began := run(a)
	s.drain(t, c, a, canary)
	speaker := b
	eventually(t, "who speaks next", func() string {
		for _, m := range []*member{b, c} {
			if m.member.Leases.Get(s.source()) != nil {
				speaker = m
				return ""
			}
		}
		return "nobody"
	})
	if now := run(speaker); !now.Began.Equal(began.Began) || now.Revision != second {
		t.Errorf("the next member conducts %+v, the one before it %+v", now, began)
	}

	<-next.came
	s.drain(t, c, b, next)
	for _, m := range []*member{a, b, c} {
		for _, target := range targets {
			targetConverged(t, m.App, target, second)
		}
		eventually(t, "the rollout ends", func() string {
			list, err := m.rollouts.List()
			if err != nil || len(list.Rollouts) != 1 || list.Rollouts[0].Phase != "Done" {
				return fmt.Sprintf("%+v, %v", list, err)
			}
			return ""
		})
	}
	if ended := run(c); !ended.Began.Equal(began.Began) {
		t.Errorf("the rollout began anew at %s, first at %s", ended.Began.Format(time.RFC3339Nano), began.Began.Format(time.RFC3339Nano))
	}
	if got := calls.list(); !slices.Equal(got, []string{"third-web", "second-web", "prod-web"}) {
		t.Errorf("machines were replaced in the order %q", got)
	}
	for _, key := range s.keys {
		if owner := s.ownerOf(key); owner != "c" {
			t.Errorf("%q owns %s, the others drain", owner, key)
		}
	}
	s.succeedsOnce(second, "fleet/apply", "fleet/apply/prod", "fleet/apply/second", "fleet/apply/third")
}
