package app

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/commands"
)

// pulled is the nth pull request that was opened.
func (w *world) pulled(t *testing.T, all *[]proposed, n int) proposed {
	t.Helper()
	list := w.forge.proposals(all)
	if len(list) != n {
		t.Fatalf("%d pull requests, want %d: %v", len(list), n, list)
	}
	return list[n-1]
}

// followed waits for a pass over prod at a commit.
func followed(t *testing.T, a *App, revision string) {
	t.Helper()
	eventually(t, "a pass at "+revision, func() string {
		if at, _ := a.current.Targets.Find("prod"); at.Last == nil || at.Last.Revision != revision {
			return "not yet"
		}
		return ""
	})
}

// TestWhatAWSHasIsProposedToBeKept: somebody changed a size beside Git. weir does not propose to
// keep what it is about to put right; of a pool that is suspended it opens one pull request, also
// over a restart, closes it once the change is gone, and after a merge there is nothing to do.
func TestWhatAWSHasIsProposedToBeKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	all := w.servePushes()
	w.forgeExtra = strings.Replace(w.forgeExtra, "[revert, images]", "[accept]", 1)
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer func() { stop() }()
	converged(t, a, first, 1)
	ask := func(fields ...string) (commands.Accepted, error) {
		return a.site.accept(t.Context(), commands.AcceptRequest{Target: "prod", Pool: "web", By: "ann", Fields: fields})
	}
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "right in its next pass") {
		t.Errorf("it would be put right: %v", err)
	}
	if _, err := gates.Suspend(a.recorder, a.daemon, gates.Request{Target: "prod", Pool: "web", Reason: "load", For: "1h", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "no other value") {
		t.Errorf("nothing has drifted: %v", err)
	}
	w.query("autoscaling", "UpdateAutoScalingGroup&AutoScalingGroupName=web&MaxSize=9")
	var got commands.Accepted
	eventually(t, "a pull request", func() string {
		a.requests.passAll()
		var err error
		if got, err = ask(); err != nil {
			return err.Error()
		}
		return ""
	})
	p := w.pulled(t, all, 1)
	if p.Base != "main" || p.Head != got.Branch || !strings.HasPrefix(p.Head, "weir/accept-") || p.Title != "Keep AWS's values of pool default/web of prod" || got.Number != 100 {
		t.Errorf("%+v %+v", p, got)
	}
	for _, want := range []string{"`maxSize` is `9`, at `overlays/prod/web.yaml:", "ann requested", "`default/web`"} {
		if !strings.Contains(strings.ReplaceAll(p.Body, "`ann`", "ann"), want) {
			t.Errorf("%q is not in the text:\n%s", want, p.Body)
		}
	}
	if diff := w.repo.Git("diff", "--unified=0", "main", p.Head); !strings.Contains(diff, "maxSize: 9") || w.repo.Git("diff", "--numstat", "main", p.Head) != "1\t1\toverlays/prod/web.yaml" {
		t.Error(diff)
	}
	if again, err := ask("maxSize"); err != nil || again.Number != got.Number {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	stop()

	// Another daemon knows of it, and closes it once AWS and Git say the same.
	a, stop = w.start()
	if again, err := ask("maxSize"); err != nil || again.Number != got.Number {
		// It may have rendered nothing yet.
		eventually(t, "the same pull request", func() string {
			if again, err = ask("maxSize"); err != nil || again.Number != got.Number {
				return fmt.Sprint(again, err)
			}
			return ""
		})
	}
	w.pulled(t, all, 1)
	w.query("autoscaling", "UpdateAutoScalingGroup&AutoScalingGroupName=web&MaxSize=3")
	eventually(t, "the pull request to be closed", func() string {
		w.forge.mu.Lock()
		defer w.forge.mu.Unlock()
		if p := w.forge.pulls[0]; p.state != "closed" {
			return p.state
		}
		return ""
	})

	// Asked for anew it is another one. Once it is merged, nothing is left to do.
	w.query("autoscaling", "UpdateAutoScalingGroup&AutoScalingGroupName=web&MaxSize=8")
	eventually(t, "a second pull request", func() string {
		if got, _ = ask("maxSize"); got.Number != 101 {
			return fmt.Sprint(got)
		}
		return ""
	})
	p = w.pulled(t, all, 2)
	w.forge.change(101, func(p *fakePull) { p.state, p.merged = "closed", w.repo.Tip(p.branch) })
	w.repo.Git("update-ref", "refs/heads/main", p.Head)
	followed(t, a, w.repo.Tip("main"))
	w.aws.ResetCalls()
	if _, err := gates.Resume(a.recorder, a.daemon, gates.Request{Target: "prod", Pool: "web", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	converged(t, a, w.repo.Tip("main"), 1)
	for _, call := range w.writes() {
		if strings.Contains(call, "UpdateAutoScalingGroup") {
			t.Errorf("AWS was put right: %s", call)
		}
	}
}

// TestNothingIsKeptUnlessItMayBePushed: the answer says what to set.
func TestNothingIsKeptUnlessItMayBePushed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.servePushes() // for reverts and images alone
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	for _, c := range []struct{ target, pool, want string }{
		{"prod", "web", "weir has no permission to propose AWS's values"}, {"prod", "none", "has no pool"}, {"none", "web", "there is no target"},
	} {
		if _, err := a.site.accept(t.Context(), commands.AcceptRequest{Target: c.target, Pool: c.pool}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.target, c.pool, err)
		}
	}
}

// TestAMemberSaysWhomToAskToKeepWhatAWSHas, as one proposes the changes of a source: the one that
// speaks for it.
func TestAMemberSaysWhomToAskToKeepWhatAWSHas(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.servePushes()
	s.forgeExtra = strings.Replace(s.forgeExtra, "[revert, images]", "[accept]", 1)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listen = free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	a := s.member("a")
	s.listen = ""
	b := s.member("b")
	defer b.stop()
	defer a.stop()
	s.owned(s.source(), a)
	converged(t, b.App, first, 1)
	ask := func(m *member) string {
		_, err := m.site.accept(t.Context(), commands.AcceptRequest{Target: "prod", Pool: "web", By: "ann"})
		var says *gates.Fault
		if !errors.As(err, &says) {
			t.Fatal(err)
		}
		return says.Message + ": " + says.Hint
	}
	if _, err := gates.Suspend(a.recorder, a.daemon, gates.Request{Target: "prod", Pool: "web", Reason: "load", For: "1h", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a pass of the owner that knows of it", func() string {
		for _, m := range []*member{a, b} {
			m.passes.mu.Lock()
			knows := slices.ContainsFunc(slices.Collect(maps.Values(m.passes.loops.of)), func(l *loop) bool { return len(l.records.Suspensions) == 1 })
			m.passes.mu.Unlock()
			if knows {
				return ""
			}
			m.requests.passAll()
		}
		return "the suspension was read by none"
	})
	s.query("autoscaling", "UpdateAutoScalingGroup&AutoScalingGroupName=web&MaxSize=9")
	eventually(t, "whom to ask", func() string {
		if got, want := ask(b), "the daemon a owns the source pools, and only it proposes its changes: ask that daemon: weir accept prod web --server http://"+a.Addr(); got != want {
			return got
		}
		return ""
	})
	eventually(t, "a pull request by the one that was named", func() string {
		a.requests.passAll()
		if _, err := a.site.accept(t.Context(), commands.AcceptRequest{Target: "prod", Pool: "web", By: "ann"}); err != nil {
			return err.Error()
		}
		return ""
	})
	a.stop()
	eventually(t, "the next one proposes", func() string {
		if _, err := b.site.accept(t.Context(), commands.AcceptRequest{Target: "prod", Pool: "web", By: "ann"}); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestWhatIsNotKnownIsNotTheSame: while a pool cannot be planned, nobody knows whether AWS and Git
// say the same of it, and its pull request stays open.
func TestWhatIsNotKnownIsNotTheSame(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]string{
		"a field that is none":     "minSize: 1\n  mistake: 2",
		"a value that AWS has not": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, quickAWS())
			all := w.servePushes()
			w.forgeExtra = strings.Replace(w.forgeExtra, "[revert, images]", "[accept]", 1)
			files := overlay(map[string]string{"web": pool("web", "m5.large", 3), "api": pool("api", "m5.large", 3)})
			w.repo.Write(files)
			first := w.repo.Commit("first")
			a, stop := w.start()
			defer stop()
			converged(t, a, first, 2)
			if _, err := gates.Suspend(a.recorder, a.daemon, gates.Request{Target: "prod", Pool: "web", Reason: "load", For: "1h", By: "ann"}); err != nil {
				t.Fatal(err)
			}
			w.query("autoscaling", "UpdateAutoScalingGroup&AutoScalingGroupName=web&MaxSize=9")
			eventually(t, "a pull request", func() string {
				a.requests.passAll()
				if _, err := a.site.accept(t.Context(), commands.AcceptRequest{Target: "prod", Pool: "web", By: "ann"}); err != nil {
					return err.Error()
				}
				return ""
			})
			text := files["overlays/prod/web.yaml"]
			if broken != "" {
				text = strings.Replace(text, "minSize: 1", broken, 1)
			} else {
				text = strings.Replace(text, "ami: {eksLookupType: AmazonLinux2023}", "ami: {id: ami-0000000000000dead}", 1)
			}
			if text == files["overlays/prod/web.yaml"] {
				t.Fatal(text)
			}
			files["overlays/prod/web.yaml"] = text
			w.repo.Write(files)
			second := w.repo.Commit("a mistake")
			followed(t, a, second)
			time.Sleep(2 * time.Second) // in which it was closed
			w.pulled(t, all, 1)
			state := func() string {
				w.forge.mu.Lock()
				defer w.forge.mu.Unlock()
				return w.forge.pulls[0].state
			}
			if state() != "open" {
				t.Fatalf("it is %s", state())
			}
			w.query("autoscaling", "UpdateAutoScalingGroup&AutoScalingGroupName=web&MaxSize=3")
			w.repo.Write(map[string]string{"overlays/prod/web.yaml": pool("web", "m5.large", 3)})
			followed(t, a, w.repo.Commit("mended"))
			eventually(t, "the pull request to be closed", func() string { return strings.TrimPrefix(state(), "closed") })
		})
	}
}
