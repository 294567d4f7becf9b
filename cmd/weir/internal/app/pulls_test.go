package app

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// propose commits files to a branch from main and opens a pull request with them.
func (w *world) propose(number int, files map[string]string, edit ...func(*fakePull)) string {
	w.t.Helper()
	branch := fmt.Sprintf("change-%d", number)
	if w.repo.Git("for-each-ref", "refs/heads/"+branch) == "" {
		w.repo.Branch(branch, w.repo.Tip("main"))
	}
	w.repo.Switch(branch)
	w.repo.Write(files)
	head := w.repo.Commit(cmp.Or(w.message, "proposal"))
	w.repo.Git("update-ref", fmt.Sprintf("refs/pull/%d/head", number), head)
	w.repo.Switch("main")
	w.forge.change(number, func(p *fakePull) {
		p.head = head
		for _, e := range edit {
			e(p)
		}
	})
	return head
}

// startApproved begins with three machines, whose plan has been approved.
func (w *world) startApproved() (a *App, first string, stop func()) {
	w.t.Helper()
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first = w.repo.Commit("first")
	a, stop = w.start()
	eventually(w.t, "the first plan", func() string {
		if s, _ := a.current.Targets.Find("prod"); s.Last == nil || s.Last.Plan == nil || s.Last.Plan.Empty() {
			return "there is no plan"
		}
		return ""
	})
	approveNow(w.t, a)
	converged(w.t, a, first, 1)
	return a, first, stop
}

// TestAPullRequestFromOpeningToMerge sees one pull request from its opening to its
// end: pending, plan, comment, an edit of the same comment, approval, merge, apply.
func TestAPullRequestFromOpeningToMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = "  apply: as-reviewed\n"
	w.forge.levels["reviewer"] = "write"
	a, first, stop := w.startApproved()
	defer stop()

	head := w.propose(1, overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	planned := func(sha, says string) func() string {
		return func() string {
			state, text := w.forge.last(sha, "fleet/plan")
			told := w.forge.told(1)
			if state != "success" || len(told) != 1 || !strings.Contains(told[0], says) {
				return fmt.Sprintf("%s %q, told %q", state, text, told)
			}
			return ""
		}
	}
	eventually(t, "the plan", planned(head, "maxSize"))
	// A push changes the same comment.
	head = w.propose(1, overlay(map[string]string{"web": pool("web", "m5.large", 6)}))
	eventually(t, "the second plan", planned(head, "6"))

	// An outsider approves nothing, a reviewer does.
	w.forge.say(1, "outsider", "weir approve")
	eventually(t, "the refusal", func() string {
		w.forge.mu.Lock()
		defer w.forge.mu.Unlock()
		if len(w.forge.marks) == 0 || !strings.HasSuffix(w.forge.marks[0], "-1") {
			return fmt.Sprint(w.forge.marks)
		}
		return ""
	})
	if r := a.recorder.Read(); r.Lost != nil || len(r.Approvals) != 0 {
		t.Fatalf("approvals: %+v, %v", r.Approvals, r.Lost)
	}
	w.forge.say(1, "reviewer", "weir approve")
	eventually(t, "the approval", func() string {
		if r := a.recorder.Read(); r.Lost != nil || len(r.Approvals) != 1 {
			return fmt.Sprintf("%+v, %v", r.Approvals, r.Lost)
		}
		return ""
	})

	// The merge is applied, exactly as approved.
	tree := w.repo.Git("rev-parse", head+"^{tree}")
	merge := w.repo.Git("commit-tree", tree, "-p", first, "-p", head, "-m", "Merge 1")
	w.repo.Branch("main", merge)
	w.forge.change(1, func(p *fakePull) { p.state, p.merged = "closed", merge })
	converged(t, a, merge, 1)
	if !strings.Contains(w.query("autoscaling", "DescribeAutoScalingGroups"), "<MaxSize>6</MaxSize>") {
		t.Error("the merge was not applied")
	}
	eventually(t, "the end", func() string {
		told := w.forge.told(1)
		if state, text := w.forge.last(merge, "fleet/apply"); state != "success" {
			return state + " " + text
		}
		if len(told) != 1 || !strings.Contains(strings.ToLower(told[0]), "merged") {
			return fmt.Sprintf("%q", told)
		}
		return ""
	})
	if r := a.recorder.Read(); r.Lost != nil || len(r.Approvals) != 0 {
		t.Errorf("approvals that are left: %+v, %v", r.Approvals, r.Lost)
	}
	// The page has it too, and what weir says is never a command to it.
	if shown := a.current.Pulls.All(); len(shown) != 1 || shown[0].State != report.PullMerged {
		t.Errorf("the page shows %+v", shown)
	}
	for _, body := range w.forge.told(1) {
		if c, ok := forge.ParseCommand(body); ok {
			t.Errorf("weir's own comment is the command %+v", c)
		}
	}
}

// A trailer that the forge, or whoever merged, put into the message of a squash lifts no
// limit that the plan on the pull request showed; one that the plan showed does.
func TestATrailerThatFirstAppearsInASquash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	pools := map[string]string{}
	for i := range 3 {
		pools[fmt.Sprintf("pool%d", i)] = pool(fmt.Sprintf("pool%d", i), "m5.large", 3)
	}
	w.repo.Write(overlay(pools))
	a, stop := w.start()
	defer stop()
	converged(t, a, w.repo.Commit("first"), 3)
	none := map[string]string{"overlays/prod/kustomization.yaml": "resources: []\n"}
	squash := func(number int, head string) string {
		tree := w.repo.Git("merge-tree", "--write-tree", w.repo.Tip("main"), head)
		sha := w.repo.Git("commit-tree", tree, "-p", w.repo.Tip("main"), "-m", "squashed\n\nWeir-Allow-Prune: prod\n")
		w.repo.Branch("main", sha)
		w.forge.change(number, func(p *fakePull) { p.state, p.merged = "closed", sha })
		return sha
	}
	shown := func(head, want string) {
		eventually(t, "the plan", func() string {
			if state, text := w.forge.last(head, "fleet/plan"); state != want {
				return state + " " + text
			}
			return ""
		})
	}

	head := w.propose(1, none)
	shown(head, "failure")
	merge := squash(1, head)
	eventually(t, "the refusal", func() string {
		if state, text := w.forge.last(merge, "fleet/apply/prod"); state != "failure" || !strings.Contains(text, "the target renders no pool at all") {
			return state + " " + text
		}
		return ""
	})
	if got := w.deletes(); len(got) > 0 {
		t.Errorf("deleted: %v", got)
	}

	// Back, and again with the trailer where reviewers see it.
	w.repo.Write(overlay(pools))
	converged(t, a, w.repo.Commit("back"), 3)
	w.message = "none\n\nWeir-Allow-Prune: prod\n"
	head = w.propose(2, none)
	shown(head, "success")
	converged(t, a, squash(2, head), 0)
	eventually(t, "everything is gone", func() string {
		if got := w.aws.CallCounts()["ec2:DeleteLaunchTemplate"]; got != 3 {
			return fmt.Sprintf("%d templates deleted", got)
		}
		return ""
	})
	eventually(t, "the end", func() string {
		for _, p := range a.current.Pulls.All() {
			if p.State != report.PullMerged || len(p.Differs) > 0 {
				return fmt.Sprintf("%d is %s: %v", p.Number, p.State, p.Differs)
			}
		}
		return ""
	})
}

// The comment on a pull request says what it would do over time. A plan that is made anew
// says the same, so that the comment is not edited for it, and nothing is written to AWS.
func TestACommentForesees(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.foreseeing = time.Minute // however busy this machine is
	w.extra = "  apply: as-reviewed\n"
	w.forge.levels["reviewer"] = "write"
	a, _, stop := w.startApproved()
	defer stop()
	written := len(w.writes())
	head := w.propose(1, overlay(map[string]string{"web": pool("web", "m6i.large", 3)}))
	eventually(t, "the plan", func() string {
		if told := w.forge.told(1); len(told) != 1 || !strings.Contains(told[0], "<summary><b>Over time</b>: done after ") || !strings.Contains(told[0], "1 pool changed, 1 machine started") {
			return fmt.Sprintf("%q", told)
		}
		return ""
	})
	planned := func() time.Time {
		p, _ := a.current.Pulls.Find("pools", 1)
		if p.HeadSHA != head || p.Forecast == nil || p.Forecast.Timeline == nil {
			t.Fatalf("shown: %+v", p)
		}
		return p.PlannedAt
	}
	first, told := planned(), w.forge.told(1)[0]
	w.forge.say(1, "reviewer", "weir plan")
	eventually(t, "the plan that was asked for", func() string {
		if !planned().After(first) {
			return "it is not made yet"
		}
		return ""
	})
	time.Sleep(300 * time.Millisecond) // in which a comment would be edited
	w.forge.mu.Lock()
	defer w.forge.mu.Unlock()
	// A world that is a second older is looked at a little more or less often.
	calls := regexp.MustCompile(`Calls to AWS: \d+`)
	for _, c := range w.forge.comments {
		if strings.Contains(c.body, "Over time") && (calls.ReplaceAllString(c.body, "") != calls.ReplaceAllString(told, "") || c.edits > 2) {
			t.Errorf("edited %d times, to %s\nfrom %s", c.edits, c.body, told)
		}
	}
	if n := len(w.writes()); n != written {
		t.Errorf("written for it: %v", w.writes()[written:])
	}
}

// approveNow approves what waits, as the command does.
func approveNow(t testing.TB, a *App) {
	t.Helper()
	s, _ := a.current.Targets.Find("prod")
	if _, err := a.recorder.Approve(s.Last.Plan.Digest(), "test"); err != nil {
		t.Fatal(err)
	}
	a.requests.passAll()
}

// A fork's pull request is not planned, and nothing is asked of AWS for it.
func TestAForkWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	head := w.propose(1, overlay(map[string]string{"web": pool("web", "m5.large", 5)}), func(p *fakePull) { p.fork = true })
	eventually(t, "waiting", func() string {
		if state, text := w.forge.last(head, "fleet/plan"); state != "pending" || !strings.Contains(text, "maintainer") {
			return state + " " + text
		}
		return ""
	})
	if told := w.forge.told(1); told != nil {
		t.Errorf("comments: %q", told)
	}
}

// TestPullRequestsArePlannedAgainAfterAnotherReload: a journal that cannot be read at
// one reload is read at the next, though the forges are the same.
func TestPullRequestsArePlannedAgainAfterAnotherReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	a, reload, stop := w.startReloading()
	defer stop()
	records := &deaf{Store: a.store}
	a.store = records
	old := a.gen.Load()
	old.stops[notifierPart] = append(old.stops[notifierPart], func(context.Context) error {
		records.first.Store(1) // the journal of commits
		records.is.Store(true)
		return nil
	})
	reload(func(*config.Config) {})
	records.is.Store(false)
	reload(func(c *config.Config) { c.Interval *= 2 })
	head := w.propose(1, overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
	eventually(t, "the plan", func() string {
		if state, text := w.forge.last(head, "fleet/plan"); state != "success" {
			return state + " " + text
		}
		return ""
	})
}

// Before a merge, the pull request and the page show what AWS would refuse of the plan, with the line that names it; weir launches nothing to find
// out.
func TestAPullRequestSaysWhatAWSWouldRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	var launches atomic.Int32
	door := w.door(func(body string) {
		if strings.Contains(body, "Action=RunInstances") {
			launches.Add(1)
		}
	})
	w.extra = fmt.Sprintf("  apply: as-reviewed\n  endpointURL: %q\n", door)
	a, _, stop := w.startApproved()
	defer stop()
	before := launches.Load()

	named := pool("web", "m5.large,\n    sshKeyName: ops", 3)
	line := 1 + strings.Count(named[:strings.Index(named, "sshKeyName")], "\n")
	head := w.propose(1, overlay(map[string]string{"web": named}))
	eventually(t, "the plan", func() string {
		told := w.forge.told(1)
		for _, want := range []string{"AWS knows no key pair ops", fmt.Sprintf("overlays/prod/web.yaml:%d", line)} {
			if len(told) != 1 || !strings.Contains(told[0], want) {
				return fmt.Sprintf("%q is not in %q", want, told)
			}
		}
		if state, text := w.forge.last(head, "fleet/plan"); state != "success" {
			return state + " " + text
		}
		return ""
	})
	if status, page := w.get(a, "/pulls/pools/1"); status != http.StatusOK || !strings.Contains(page, "AWS knows no key pair ops") {
		t.Errorf("the page says %d: %s", status, page)
	}
	if n := launches.Load() - before; n > 0 {
		t.Errorf("%d launches were tried for a pull request", n)
	}
}
