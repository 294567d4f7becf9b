package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
)

// A webhook that reaches a member that does not read the source, and a command there, make
// the one look that does.
func TestAHintThatReachesOneMemberIsHeededByAnother(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.poll = time.Hour
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	converged(t, b.App, first, 1)
	if f := b.gen.Load().followers["pools"]; f.Leads() {
		t.Fatal("the member reads the source itself")
	}
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := s.repo.Commit("second")
	b.gen.Load().followers["pools"].Nudge() // as a webhook does
	converged(t, b.App, second, 1)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	third := s.repo.Commit("third")
	if got, err := b.daemon.Reconcile(nil, true); err != nil || !slices.Equal(got, []string{"prod"}) {
		t.Errorf("passes over %v", got)
	}
	for _, m := range []*member{b, a} {
		converged(t, m.App, third, 1)
	}
}

// A source's owner that cannot read it makes no progress with it, so its lease goes to a member that can.
func TestWhoCannotReadASourceMakesNoProgressWithIt(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	s.owned(s.source(), a)
	goes := func(want bool) {
		t.Helper()
		eventually(t, "progress", func() string {
			if got := a.peers.progresses(s.source(), time.Now()); got != want {
				return fmt.Sprint("progress: ", got)
			}
			return ""
		})
	}
	converged(t, a.App, first, 1)
	goes(true)
	s.repo.Down(true)
	goes(false)
	s.repo.Down(false)
	goes(true)
}

// An owner that cannot fetch the commit that was published makes no progress with its accounts.
func TestWhoCannotFetchTheHeadMakesNoProgress(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	converged(t, b.App, first, 1)
	goes := func(want bool) {
		t.Helper()
		eventually(t, "progress", func() string {
			if got := b.peers.progresses(s.scope(), time.Now()); got != want {
				return fmt.Sprint("progress: ", got)
			}
			return ""
		})
	}
	goes(true)
	s.repo.Down(true)
	f := a.gen.Load().followers["pools"]
	// As if the owner of the source still reached Git.
	if err := a.member.Heads.Publish(a.member.Leases.Get(s.source()), f.ID(), "pools", strings.Repeat("a", 40), ""); err != nil {
		t.Fatal(err)
	}
	goes(false)
	if err := a.member.Heads.Publish(a.member.Leases.Get(s.source()), f.ID(), "pools", first, ""); err != nil {
		t.Fatal(err)
	}
	goes(true)
	s.repo.Down(false)
}

// A member that gets a lost account and region again passes over it at once, without asking first whose account it is.
func TestWhatWasLostAndIsOwnedAgainIsPassedOver(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a := s.member("a")
	defer a.stop()
	wire := coordtest.NewWire(s.store)
	c := s.settings("b")
	c.Interval = time.Hour
	s.engine, s.name = coord.New(wire, coord.Options{}), "b"
	app, stop := s.startConfig(c, nil)
	defer stop()
	b := &member{app, stop}
	converged(t, b.App, first, 1)
	before := b.member.Leases.Get(s.scope())
	wire.Cut()
	eventually(t, "the loss", func() string {
		if b.member.Leases.Get(s.scope()) != nil {
			return "it owns it still"
		}
		return ""
	})
	wire.Mend()
	var l *coord.Lease
	eventually(t, "the account and region", func() string {
		if l = b.member.Leases.Get(s.scope()); l == nil || l == before {
			return "it does not own it"
		}
		return ""
	})
	eventually(t, "passes", func() string {
		b.passes.mu.Lock()
		defer b.passes.mu.Unlock()
		for _, of := range b.passes.loops.of {
			if of.lease == l {
				return ""
			}
		}
		return "there are none"
	})
}

// A branch that comes back to a commit is a time of its own: who waits for a target knows
// by its number whether the target has been looked at since.
func TestACommitThatComesBackIsATimeOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	defer b.stop()
	reported := func(revision string, seq int64) {
		t.Helper()
		for _, m := range []*member{a, b} {
			eventually(t, "the report", func() string {
				r, _ := m.current.Targets.Find("prod")
				m.passes.mu.Lock()
				wants := m.passes.memory.conditions["prod"].Seq
				m.passes.mu.Unlock()
				if r.Last == nil || r.Last.Revision != revision || r.Last.Seq != seq || wants != seq {
					return fmt.Sprintf("%+v, wanted since %d", r.Last, wants)
				}
				return ""
			})
		}
	}
	reported(first, 1)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := s.repo.Commit("second")
	reported(second, 2)
	s.repo.Git("update-ref", "HEAD", first)
	reported(first, 3)
}
