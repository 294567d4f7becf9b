package reconciler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// line is a repository whose commits follow one another, as far as one process has
// read it.
type line []string

// commits are so many, each named by its number.
func commits(n int) line {
	var l line
	for i := range n {
		l = append(l, fmt.Sprintf("%07x%s", i+1, strings.Repeat("c", 33)))
	}
	return l
}

func (l line) Relations(_ context.Context, followed string, asked []string) (map[string]model.Relation, error) {
	out := map[string]model.Relation{}
	own := slices.Index(l, followed)
	for _, a := range asked {
		switch at := slices.IndexFunc(l, func(c string) bool { return strings.HasPrefix(c, a) }); {
		case at < 0:
			out[a] = model.RelationUnknown
		case at <= own:
			out[a] = model.RelationOlder
		default:
			out[a] = model.RelationNewer
		}
	}
	return out, nil
}

// still makes everybody ask for what it does not have.
type still struct{ line }

func (s still) Relations(ctx context.Context, followed string, asked []string) (map[string]model.Relation, error) {
	out, err := s.line.Relations(ctx, followed, asked)
	for k, v := range out {
		if v == model.RelationUnknown {
			out[k] = model.RelationAsked
		}
	}
	return out, err
}

// at is a target as it is at a commit of a line.
func at(l reconciler.Ancestry, revision string, d reconciler.Desired) reconciler.Desired {
	d.Ancestry, d.Commit = l, content.Commit{Revision: revision, Subject: "commit " + revision[:7]}
	return d
}

func keyed(p intent.Pool) intent.Pool {
	t := *p.LaunchTemplate
	t.Data.KeyName = "another"
	p.LaunchTemplate = &t
	return p
}

// beside makes passes of two processes in turn for a while, one of them at an old
// commit, and returns what each found last, and how often each of AWS's operations was
// called.
func (w *world) beside(rounds int, ahead, behind reconciler.Desired) (first, second *plan.Report, calls map[string]int) {
	w.t.Helper()
	a, b := newScope(w), newScope(w)
	pass := func(s *reconciler.Scope, d reconciler.Desired) *plan.Report {
		reports, err := s.Pass(context.Background(), []reconciler.Desired{d}, reconciler.Apply)
		if err != nil {
			w.t.Fatal(err)
		}
		return reports[0]
	}
	pass(b, behind) // it has converged there, so that what differs is drift to it
	w.srv.ResetCalls()
	for range rounds {
		first, second = pass(a, ahead), pass(b, behind)
		w.clock.Advance(time.Second)
	}
	return first, second, w.srv.CallCounts()
}

// errorsOf are the codes of what a report finds, and the errors in words.
func errorsOf(r *plan.Report) (out []string) {
	for _, d := range r.Diagnostics {
		if out = append(out, d.Code); d.Severity == diag.Error {
			out = append(out, d.Summary)
		}
	}
	return out
}

func TestAProcessThatFellBehindDoesNotFight(t *testing.T) {
	t.Parallel()
	c := commits(3)
	big := func() intent.Pool { return groupPool("web", "m5.xlarge", 3) }
	small := func() intent.Pool { return groupPool("web", "m5.large", 3) }
	tagged := small()
	tagged.Group.Tags = map[string]string{"Name": "web", "team": "a"}
	both := func(ng intent.Pool) []intent.Pool { return []intent.Pool{small(), ng} }
	node := keyed(nodegroupPool("ng", 2))
	cases := map[string]struct {
		old, new []intent.Pool
		// most are the writes of the new commit.
		most map[string]int
	}{
		"a rollout": {[]intent.Pool{small()}, []intent.Pool{big()},
			map[string]int{"ec2:CreateLaunchTemplateVersion": 1, "autoscaling:StartInstanceRefresh": 1, "ec2:ModifyLaunchTemplate": 1}},
		"a nodegroup's update": {both(nodegroupPool("ng", 2)), both(node), map[string]int{"ec2:CreateLaunchTemplateVersion": 1, "eks:UpdateNodegroupVersion": 1, "ec2:ModifyLaunchTemplate": 1}},
		"tags":                 {[]intent.Pool{small()}, []intent.Pool{tagged}, map[string]int{"autoscaling:CreateOrUpdateTags": 1}},
		"a size": {[]intent.Pool{small()}, []intent.Pool{groupPool("web", "m5.large", 4)},
			map[string]int{"autoscaling:CreateOrUpdateTags": 1, "autoscaling:UpdateAutoScalingGroup": 1}},
		"a nodegroup's size": {both(nodegroupPool("ng", 2)), both(nodegroupPool("ng", 3)), map[string]int{"eks:TagResource": 1, "eks:UpdateNodegroupConfig": 1}},
		"a pool more": {[]intent.Pool{small()}, []intent.Pool{small(), groupPool("more", "m5.large", 1)},
			map[string]int{"ec2:CreateLaunchTemplate": 1, "autoscaling:CreateAutoScalingGroup": 1}},
		"a nodegroup more": {[]intent.Pool{small()}, both(nodegroupPool("ng", 1)),
			map[string]int{"ec2:CreateLaunchTemplate": 1, "eks:CreateNodegroup": 1, "autoscaling:CreateOrUpdateTags": 1}},
		"a pool less, another rolled": {[]intent.Pool{small(), groupPool("less", "m5.large", 1)}, []intent.Pool{big()},
			map[string]int{"ec2:CreateLaunchTemplateVersion": 1, "autoscaling:StartInstanceRefresh": 1, "ec2:ModifyLaunchTemplate": 1, "autoscaling:DeleteAutoScalingGroup": 1, "ec2:DeleteLaunchTemplate": 1}},
	}
	repositories := map[string]reconciler.Ancestry{"it has the commit": c, "it has not": c[:1], "it asks": still{c[:1]}}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		tt := cases[name]
		for j, kind := range slices.Sorted(maps.Keys(repositories)) {
			repository := repositories[kind]
			if !sampled(3, i, j) {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				w := newWorld(t)
				w.settle(at(c, c[0], target("blue", tt.old...)))
				ahead, behind := at(c, c[1], target("blue", tt.new...)), at(repository, c[0], target("blue", tt.old...))
				first, second, _ := w.beside(120, ahead, behind)
				writes := map[string]int{}
				for _, call := range w.srv.Calls() {
					if call.Write {
						writes[call.Service+":"+call.Operation]++
					}
				}
				if d := cmp.Diff(tt.most, writes); d != "" {
					t.Errorf("writes (-of the new commit +of both):\n%s", d)
				}
				if !first.Converged() {
					t.Errorf("the first has not converged: %v", errorsOf(first))
				}
				code, hold := "commit-ahead", step.HeldStopped
				if _, asks := repository.(still); asks {
					code, hold = "commit-asked", step.HeldWaiting
				}
				if !hasCode(second, code) || hasCode(second, "drift") || len(second.Plan.Steps) == 0 || second.Plan.Runnable() > 0 {
					t.Errorf("the second says %v", errorsOf(second))
				}
				for _, s := range second.Plan.Steps {
					if s.Held != hold || s.HeldReason == "" || s.Drift != nil {
						t.Errorf("%s %s is held for %q (%s), drift %v", s.Verb, s.Name, s.Held, s.HeldReason, s.Drift)
					}
				}
				if ahead := second.Plan.Ahead; hold == step.HeldStopped && (len(ahead) == 0 || !strings.HasPrefix(c[1], ahead[0])) {
					t.Errorf("ahead: got %v", ahead)
				}
			})
		}
	}
}

// Where the newer commit makes nothing that names it, as a revert in the middle of a
// rollout that goes back to the version before, both may think that the other is somebody's hand. Neither goes on
// for ever, however often it is started anew.
func TestRolloutsOfOneCommitAreBounded(t *testing.T) {
	t.Parallel()
	c := commits(3)
	one, two := target("blue", groupPool("web", "m5.large", 3)), target("blue", groupPool("web", "m5.xlarge", 3))
	t.Run("two processes", func(t *testing.T) {
		w := newWorld(t)
		w.settle(at(c, c[0], one))
		w.must(reconciler.Apply, at(c, c[1], two))
		_, _, calls := w.beside(passes(300), at(c, c[2], one), at(c[:2], c[1], two))
		if n := calls["autoscaling:StartInstanceRefresh"]; n < 1 || n > 8 {
			t.Errorf("%d refreshes were started: %v", n, calls)
		}
		// Started anew, the one that is ahead makes what names its commit.
		first, _, calls := w.beside(100, at(c, c[2], one), at(c[:2], c[1], two))
		if calls["autoscaling:StartInstanceRefresh"] > 1 || calls["autoscaling:CancelInstanceRefresh"] > 0 || !first.Converged() {
			t.Errorf("they go on: %v, %v", calls, errorsOf(first))
		}
		w.srv.ResetCalls()
		for range 30 {
			w.must(reconciler.Apply, at(c, c[2], one)) // of a third process
			w.clock.Advance(time.Second)
		}
		if n := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"]; n > 1 {
			t.Errorf("a process by itself started %d", n)
		}
	})
	t.Run("that start anew", func(t *testing.T) {
		w := newWorld(t)
		w.settle(at(c, c[0], one))
		w.must(reconciler.Apply, at(c, c[1], two))
		w.srv.ResetCalls()
		for i := range passes(240) { // each pass is of another process
			w.restart()
			w.must(reconciler.Apply, []reconciler.Desired{at(c, c[2], one), at(c[:2], c[1], two)}[i%2])
			w.clock.Advance(time.Second)
		}
		if n := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"]; n < 1 || n > 8 {
			t.Errorf("%d refreshes were started, want 1 to 8", n)
		}
	})
	// Without an answer from Git, two that want otherwise come to rest all the same.
	t.Run("of whom nobody knows Git", func(t *testing.T) {
		for name, pools := range map[string][2]intent.Pool{
			"groups":     {groupPool("web", "m5.large", 3), groupPool("web", "m5.xlarge", 3)},
			"nodegroups": {nodegroupPool("ng", 2), keyed(nodegroupPool("ng", 2))},
		} {
			w := newWorld(t)
			ahead, behind := at(nil, c[1], target("blue", pools[0])), at(nil, c[0], target("blue", pools[1]))
			w.settle(behind)
			first, second, calls := w.beside(passes(400), ahead, behind)
			if n := calls["autoscaling:StartInstanceRefresh"] + calls["eks:UpdateNodegroupVersion"]; n < 1 || n > 6 {
				t.Errorf("%s: %d rollouts were started: %v", name, n, calls)
			}
			if !hasCode(first, "rollout-contested") && !hasCode(second, "rollout-contested") {
				t.Errorf("%s: nobody says so: %v, %v", name, errorsOf(first), errorsOf(second))
			}
		}
	})
	t.Run("retried", func(t *testing.T) {
		w := newWorld(t)
		w.settle(at(c, c[0], one))
		w.must(reconciler.Apply, at(c, c[1], two))
		w.beside(passes(600), at(c, c[2], one), at(c[:2], c[1], two))
		w.clock.Advance(time.Minute)
		w.scope.Retry([]string{"default/web"})
		w.settle(at(c, c[2], one))
	})
}

// A commit that only takes a pool away leaves nothing that names it: a process that fell
// behind makes the pool anew, but not for ever.
func TestAPoolThatIsDeletedEachTimeIsNotMadeForEver(t *testing.T) {
	t.Parallel()
	c := commits(2)
	for name, less := range map[string]intent.Pool{"group": groupPool("less", "m5.large", 1), "nodegroup": nodegroupPool("less", 1)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			web := groupPool("web", "m5.large", 1)
			w.settle(at(c, c[0], target("blue", web, less)))
			first, second, calls := w.beside(passes(400), at(c, c[1], target("blue", web)), at(c[:1], c[0], target("blue", web, less)))
			if n := calls["autoscaling:CreateAutoScalingGroup"] + calls["eks:CreateNodegroup"]; n < 1 || n > 3 {
				t.Errorf("it was made %d times: %v", n, calls)
			}
			if !first.Converged() || !hasCode(second, "rollout-contested") || second.Plan.Runnable() > 0 {
				t.Errorf("the first says %v, the second %v", errorsOf(first), errorsOf(second))
			}
		})
	}
}

// A resource of another weir, or of another repository of this one, says nothing of
// this repository's commits.
func TestCommitsOfOtherRepositoriesDoNotCount(t *testing.T) {
	c := commits(2)
	theirs := strings.Repeat("f", 40)
	for name, former := range map[string]func(*model.Policy){
		"another weir":       func(p *model.Policy) { p.Instance = "other" },
		"another repository": func(p *model.Policy) { p.Source = "ffffffffffff" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before := at(nil, theirs, target("blue", groupPool("web", "m5.large", 2)))
			before.Ancestry = nil
			former(&before.Policy)
			before.Policy.Sources = []string{testSource, "ffffffffffff"}
			w.settle(before)
			now := at(c, c[0], target("blue", groupPool("web", "m5.large", 2)))
			now.Policy.Sources = []string{testSource, "ffffffffffff"}
			if before.Policy.Instance != testInstance {
				take := now
				take.Policy.Adoption = model.Adoption{Asked: true, From: "other"}
				for range 3 {
					w.must(reconciler.Apply, take)
				}
			}
			w.settle(now)
			next := at(c, c[1], target("blue", groupPool("web", "m5.xlarge", 2)))
			next.Policy.Sources = now.Policy.Sources
			w.settle(next)
			// From then on its own count.
			now.Ancestry = c[:1]
			if _, second, _ := w.beside(3, next, now); !hasCode(second, "commit-ahead") {
				t.Errorf("a process that fell behind says %v", errorsOf(second))
			}
		})
	}
}

// The commit stands in what is written anyway, costs no write, and is not part of a plan.
func TestTheCommitGoesAlongWithWrites(t *testing.T) {
	c := commits(3)
	w := newWorld(t)
	pools := func(tag string) []intent.Pool {
		web, ng := groupPool("web", "m5.large", 1), nodegroupPool("ng", 1)
		if tag != "" {
			web.Group.Tags, ng.Nodegroup.Tags = map[string]string{"Name": "web", "team": tag}, map[string]string{"team": tag}
			web.LaunchTemplate.Tags = map[string]string{"Name": "web", "team": tag}
		}
		return []intent.Pool{web, ng}
	}
	r := w.must(reconciler.PlanOnly, at(c, c[0], target("blue", pools("")...)))[0]
	if text := fmt.Sprint(r.Plan.Steps[0].Changes, r.Plan.Steps[1].Changes); strings.Contains(text, "revision") {
		t.Errorf("the plan has it: %s", text)
	}
	if other := w.must(reconciler.PlanOnly, at(c, c[1], target("blue", pools("")...)))[0]; other.Plan.Digest() != r.Plan.Digest() {
		t.Error("another commit has another digest")
	}
	w.settle(at(c, c[0], target("blue", pools("")...)))
	w.srv.ResetCalls()
	w.settle(at(c, c[1], target("blue", pools("")...)))
	if _, writes := w.calls(); writes > 0 {
		t.Errorf("a commit that changes nothing wrote %v", w.wrote())
	}
	revisions := func() (out []string) {
		return append(out, w.groupTag("web", observed.TagRevision), w.templateTags("web")[observed.TagRevision])
	}
	if d := cmp.Diff([]string{c[0], c[0]}, revisions()); d != "" {
		t.Errorf("made from (-want +got):\n%s", d)
	}
	w.settle(at(c, c[2], target("blue", pools("a")...)))
	if d := cmp.Diff([]string{c[2], c[2]}, revisions()); d != "" {
		t.Errorf("tagged from (-want +got):\n%s", d)
	}
	// Somebody takes it away: nobody minds.
	w.tagGroup("web", observed.TagRevision, "something else")
	w.srv.ResetCalls()
	w.settle(at(c, c[2], target("blue", pools("a")...)))
	if _, writes := w.calls(); writes > 0 {
		t.Errorf("wrote %v", w.wrote())
	}
}

// A resource that has as many tags as AWS allows goes without.
func TestTheCommitTakesNobodysPlace(t *testing.T) {
	c := commits(2)
	for _, own := range []int{40, 43, 44, 45} {
		t.Run(fmt.Sprint(own), func(t *testing.T) {
			w := newWorld(t)
			pool := groupPool("web", "m5.large", 1)
			pool.Group.Tags = map[string]string{}
			for i := range own {
				pool.Group.Tags[fmt.Sprintf("tag-%02d", i)] = "x"
			}
			w.settle(at(c, c[0], target("blue", pool)))
			pool.Group.Tags["tag-00"] = "y"
			w.settle(at(c, c[1], target("blue", pool)))
			if n := len(w.group("web").Tags); n > 50 {
				t.Errorf("%d tags", n)
			}
		})
	}
}
