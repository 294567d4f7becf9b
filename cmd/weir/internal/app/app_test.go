package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func TestAPushEndsAsAStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	for _, name := range []string{"fleet/apply", "fleet/apply/prod"} {
		eventually(t, name, func() string {
			if got := w.forge.states(first, name); !succeeded(got) {
				return "states: " + got
			}
			return ""
		})
	}
	if !w.forge.tokens["token s3cret-token"] || len(w.forge.tokens) != 1 {
		t.Errorf("the forge saw the credentials %v", w.forge.tokens)
	}

	// A rollout keeps the commit pending until its instances run.
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m6i.large", 3)}))
	second := w.repo.Commit("second")
	converged(t, a, second, 1)
	eventually(t, "second commit", func() string {
		if got := w.forge.states(second, "fleet/apply"); !succeeded(got) {
			return "states: " + got
		}
		return ""
	})

	// A commit that touches no target says so at once.
	w.repo.Write(map[string]string{"README.md": "x"})
	third := w.repo.Commit("third")
	eventually(t, "third commit", func() string {
		state, text := w.forge.last(third, "fleet/apply")
		if state != "success" || text != "no target affected" {
			return state + " " + text
		}
		return ""
	})
	if got := w.forge.links(second); got != nil {
		t.Errorf("without publicURL, the statuses link to %v", got)
	}
	if got := w.forge.states(third, "fleet/apply/prod"); got != "" {
		t.Errorf("an untouched target got statuses: %s", got)
	}
	if n, err := testutil.GatherAndCount(a.registry, "weir_source_fetches_total"); err != nil || n == 0 {
		t.Errorf("fetches are not counted: %d, %v", n, err)
	}
	want := []string{"CreateLaunchTemplate", "CreateAutoScalingGroup", "CreateLaunchTemplateVersion", "StartInstanceRefresh", "ModifyLaunchTemplate"}
	if diff := cmp.Diff(want, w.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestTroubleDeletesNothing brings one kind of trouble after the other upon a
// daemon that may delete anything it likes, and mends it.
func TestTroubleDeletesNothing(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
	kustomization := "overlays/prod/kustomization.yaml"
	tests := map[string]struct {
		bring func(w *world)
		// said must be in what the daemon says of the target or the source.
		said string
		mend func(w *world)
		// failed: the commit that brings the trouble gets the status failure.
		failed bool
	}{
		"unreachable remote": {
			bring: func(w *world) { w.repo.Down(true) }, said: "unreachable",
			mend: func(w *world) { w.repo.Down(false) },
		},
		"deleted branch": {
			bring: func(w *world) { w.repo.Branch("other", w.repo.Tip("main")); w.repo.DeleteBranch("main") }, said: "missing-ref",
		},
		"empty overlay": {
			bring: func(w *world) {
				w.repo.Write(map[string]string{kustomization: "resources: []\n"})
				w.repo.Commit("empty")
			}, said: "no pool at all", failed: true,
		},
		"overlay removed": {
			bring: func(w *world) { w.repo.Remove("overlays"); w.repo.Commit("removed") }, said: "path-missing", failed: true,
		},
		"broken YAML": {
			bring: func(w *world) {
				w.repo.Write(map[string]string{"overlays/prod/web.yaml": "a: [\n"})
				w.repo.Commit("broken")
			}, said: "yaml-syntax", failed: true,
		},
		"unknown field": {
			bring: func(w *world) {
				w.repo.Write(map[string]string{"overlays/prod/web.yaml": strings.Replace(pool("web", "m5.large", 3), "maxSize", "maxsize", 1)})
				w.repo.Commit("typo")
			}, said: "unknown-field", failed: true,
		},
		"alias bomb": {
			bring: func(w *world) {
				w.repo.Write(map[string]string{"overlays/prod/web.yaml": bomb})
				w.repo.Commit("bomb")
			}, said: "yaml-alias", failed: true,
		},
		"self-referencing alias": {
			bring: func(w *world) {
				w.repo.Write(map[string]string{"overlays/prod/web.yaml": "a: &a\n  b: *a\n"})
				w.repo.Commit("snake")
			}, said: "yaml-alias", failed: true,
		},
		"symlink out": {
			bring: func(w *world) {
				w.repo.Write(map[string]string{"overlays/prod/web.yaml": "symlink:../../../../../etc/passwd"})
				w.repo.Commit("link")
			}, said: "symlink-escape", failed: true,
		},
		"remote base": {
			bring: func(w *world) {
				w.repo.Write(map[string]string{kustomization: "resources: [https://example.com/base]\n"})
				w.repo.Commit("remote")
			}, said: "remote-reference", failed: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, quickAWS())
			good := overlay(map[string]string{"web": pool("web", "m5.large", 3), "api": pool("api", "m5.large", 3)})
			w.repo.Write(good)
			first := w.repo.Commit("first")
			a, stop := w.start()
			defer stop()
			converged(t, a, first, 2)

			tc.bring(w)
			eventually(t, "the trouble is told", func() string {
				said := troubles(a)
				if !strings.Contains(said, tc.said) {
					return "said: " + said
				}
				return ""
			})
			if tc.failed {
				tip := w.repo.Tip("main")
				eventually(t, "the commit fails", func() string {
					if state, text := w.forge.last(tip, "fleet/apply"); state != "failure" {
						return state + " " + text
					}
					return ""
				})
			}

			if tc.mend != nil {
				tc.mend(w)
			}
			w.repo.Remove("overlays")
			for file, text := range good {
				good[file] = strings.ReplaceAll(text, "maxSize: 3", "maxSize: 4")
			}
			w.repo.Write(good)
			mended := w.repo.Commit("mended")
			converged(t, a, mended, 2)
			if got := w.deletes(); len(got) > 0 {
				t.Errorf("deleted: %v", got)
			}
		})
	}
}

// troubles is all that the daemon says is wrong.
func troubles(a *App) string {
	var out []string
	for _, s := range a.current.Sources.All() {
		out = append(out, s.Error)
	}
	for _, s := range a.current.Targets.All() {
		if s.Last == nil {
			continue
		}
		for _, d := range s.Last.Diagnostics {
			out = append(out, d.String()+d.Detail)
		}
	}
	return strings.Join(out, "\n")
}

func TestCorruptMirror(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	converged(t, a, first, 1)
	stop()
	packs, err := filepath.Glob(filepath.Join(w.dir, "state", "mirrors", "*", "objects", "pack", "*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("no pack in the mirror: %v", err)
	}
	for _, p := range packs {
		if err := os.Chmod(p, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(p, 20); err != nil {
			t.Fatal(err)
		}
	}
	a, stop = w.start()
	defer stop()
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	converged(t, a, w.repo.Commit("second"), 1)
	if got := w.deletes(); len(got) > 0 {
		t.Errorf("deleted: %v", got)
	}
}

func TestPruneTrailer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = ""
	pools := map[string]string{}
	for i := range 3 {
		name := fmt.Sprintf("pool%d", i)
		pools[name] = pool(name, "m5.large", 3)
	}
	w.repo.Write(overlay(pools))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 3)
	// All pools at once need the trailer, whatever the limit.
	w.repo.Remove("overlays/prod/pool0.yaml", "overlays/prod/pool1.yaml", "overlays/prod/pool2.yaml")
	w.repo.Write(map[string]string{"overlays/prod/kustomization.yaml": "resources: []\n"})
	second := w.repo.Commit("remove all\n\nWeir-Allow-Prune: prod\n")
	converged(t, a, second, 0)
	eventually(t, "everything is gone", func() string {
		if got := w.aws.CallCounts()["ec2:DeleteLaunchTemplate"]; got != 3 {
			return fmt.Sprintf("%d templates deleted", got)
		}
		return ""
	})
}

// awsStart is where manual clocks begin.
var awsStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestStopLeavesNothingPending(t *testing.T) {
	t.Parallel()
	clock := awsemu.NewManualClock(awsStart)
	w := newWorld(t, awsemu.Options{Clock: clock})
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	_, stop := w.start()
	eventually(t, "the rollout moves", func() string {
		if len(w.writes()) < 2 || w.forge.states(first, "fleet/apply/prod") != "pending" {
			return fmt.Sprint(w.writes())
		}
		return ""
	})
	stop()
	if got := w.forge.pending(); len(got) > 0 {
		t.Errorf("left pending: %v", got)
	}
	clock.Advance(time.Minute)
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	eventually(t, "the verdict", func() string {
		if got := w.forge.states(first, "fleet/apply/prod"); !strings.HasSuffix(got, "success") {
			return got
		}
		return ""
	})
}

// TestKilledAnywhere ends the daemon at each call that writes to AWS, before or
// after its effect, and starts it again: while a pool is made, and while it is
// rolled out.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, kind := range []awsemu.FaultKind{awsemu.CutBefore, awsemu.LoseAnswer} {
		for n := range 2 {
			t.Run(fmt.Sprintf("create, kind %d, write %d", kind, n+1), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, quickAWS())
				w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
				a, stop := w.killed(kind, n)
				defer stop()
				converged(t, a, w.repo.Tip("main"), 1)
				w.holds(1, 0)
			})
		}
		for n := range 3 {
			t.Run(fmt.Sprintf("rollout, kind %d, write %d", kind, n+1), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, quickAWS())
				w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
				first := w.repo.Commit("first")
				a, stop := w.start()
				converged(t, a, first, 1)
				stop()
				w.aws.ResetCalls()
				w.repo.Write(overlay(map[string]string{"web": pool("web", "m6i.large", 3)}))
				a, stop = w.killed(kind, n)
				defer stop()
				converged(t, a, w.repo.Tip("main"), 1)
				w.holds(2, 1)
			})
		}
	}
}

// killed commits what was written, runs a daemon until its nth write and all
// later ones are cut off, ends it, and returns another one.
func (w *world) killed(kind awsemu.FaultKind, n int) (a *App, stop func()) {
	w.t.Helper()
	w.repo.Commit("next")
	remove := w.aws.Faults().Add(awsemu.Fault{Kind: kind, WritesOnly: true, After: n, Times: -1})
	_, stop = w.start()
	eventually(w.t, "the fault strikes", func() string {
		for _, c := range w.aws.Calls() {
			if c.Write && c.Lost {
				return ""
			}
		}
		return "no call was cut"
	})
	stop()
	remove()
	return w.start()
}

// holds checks that AWS holds one template with so many versions, and one group
// that had so many refreshes.
func (w *world) holds(versions, refreshes int) {
	w.t.Helper()
	for _, want := range []struct {
		service, action, mark string
		n                     int
	}{
		{"ec2", "DescribeLaunchTemplates", "<launchTemplateName>", 1},
		{"ec2", "DescribeLaunchTemplateVersions&LaunchTemplateName=web", "<versionNumber>", versions},
		{"autoscaling", "DescribeAutoScalingGroups", "<AutoScalingGroupARN>", 1},
		{"autoscaling", "DescribeInstanceRefreshes&AutoScalingGroupName=web", "<InstanceRefreshId>", refreshes},
	} {
		if got := strings.Count(w.query(want.service, want.action), want.mark); got != want.n {
			w.t.Errorf("%s: want %d, got %d", want.action, want.n, got)
		}
	}
}
