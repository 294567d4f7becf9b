package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
)

// Tests of pushes, comments, passes, restarts and new configurations between any two things that weir does.

// meanwhile is Git, with something that happens while it is asked.
type meanwhile struct {
	Git
	do func()
}

func (m meanwhile) Pull(ctx context.Context, p source.PullRef) (source.Merge, error) {
	m.do()
	return m.Git.Pull(ctx, p)
}

// noGit is Git that is away.
type noGit struct{ Git }

func (noGit) Pull(context.Context, source.PullRef) (source.Merge, error) {
	return source.Merge{}, errors.New("away")
}

func TestAWSMovesWhileAPlanIsMade(t *testing.T) {
	b, _ := started(t, "", "")
	b.pass()
	git := b.w.o.Git
	b.w.o.Git = meanwhile{git, func() {
		b.clock = b.clock.Add(time.Second)
		b.w.Reported(&plan.Report{Source: "s", Target: "one", Err: errors.New("something else")})
		b.clock = b.clock.Add(time.Second)
	}}
	b.round()
	b.w.o.Git = git
	told := len(b.display.shown)
	if b.round(); len(b.display.shown) == told {
		t.Error("the plan was not made again, though AWS moved after it was begun")
	}
	told = len(b.display.shown)
	if b.round(); len(b.display.shown) != told {
		t.Error("the plan is made again though nothing moved")
	}
}

// A comment that weir hears of late was not about the commit that was pushed after it.
func TestALateCommentAllowsNoLaterCommit(t *testing.T) {
	fork := func(p *forge.PullRequest) { p.Fork = true }
	worse := map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 99")}
	t.Run("the forge tells late", func(t *testing.T) {
		b, _ := started(t, "forks: {allowBy: [comment]}", "", fork)
		b.round()
		said := b.clock.Add(time.Second)
		b.clock = b.clock.Add(5 * time.Second)
		b.propose(1, worse, func(p *forge.PullRequest) { p.UpdatedAt = b.clock })
		b.look()
		b.forge.comments = append(b.forge.comments, forge.Comment{ID: 1, Number: 1, Author: "writer", Body: "weir plan", CreatedAt: said, UpdatedAt: said})
		if b.look(); b.display.last().State != report.PullWaiting {
			t.Errorf("told: %+v", b.display.last())
		}
		b.forge.say(1, "writer", "weir plan")
		if b.look(); b.display.last().State != report.PullPlanned {
			t.Errorf("told: %+v", b.display.last())
		}
	})
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("comments cannot be read, restart %t", restarts), func(t *testing.T) {
			b, _ := started(t, "forks: {allowBy: [comment]}", "", fork)
			b.round()
			b.forge.say(1, "writer", "weir plan")
			b.propose(1, worse)
			b.forge.deaf = &forgehttp.Error{Fault: forgehttp.FaultBusy, Message: "away"}
			b.look()
			if restarts {
				b.restart()
			}
			b.forge.deaf = nil
			if b.look(); b.display.last().State != report.PullWaiting {
				t.Errorf("told: %+v", b.display.last())
			}
		})
	}
}

func TestAnAllowedForkIsNoneWhereForksAreNotPlanned(t *testing.T) {
	b, _ := started(t, "forks: {allowBy: [comment]}", "", func(p *forge.PullRequest) { p.Fork = true })
	b.round()
	b.forge.say(1, "writer", "weir plan")
	if b.look(); b.display.last().State != report.PullPlanned {
		t.Fatalf("told: %+v", b.display.last())
	}
	b.policy.Forks = Forks{}
	b.restart()
	if b.look(); b.display.last().State != report.PullWaiting {
		t.Errorf("told: %+v", b.display.last())
	}
}

func TestAnApprovalThatWasGivenWhileWeirWasAway(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	b.round()
	b.publish()
	want := b.display.last()
	b.forge.say(1, "writer", "weir approve")
	b.restart()
	b.look()
	if got := b.approved(); len(got) != 1 || !strings.HasPrefix(got[0], want.Reports[0].Plan.Digest()) {
		t.Fatalf("approved: %v; replies: %q", got, b.forge.replies)
	}
	if p := b.display.last(); p.State != report.PullPlanned || p.Digest != want.Digest || p.Approved != "writer" {
		t.Errorf("told: %+v", p)
	}
}

// A status that is there is not made pending by a restart: it may be one that a
// merge waits for.
func TestARestartBeginsNothingAnew(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	b.restart()
	b.round()
	if len(b.display.begun) != 1 || b.display.last().State != report.PullPlanned {
		t.Errorf("begun: %v", b.display.begun)
	}
}

// Before the source has said which branch it follows, no pull request goes into it.
func TestNothingIsListedBeforeTheBranchIsKnown(t *testing.T) {
	b, _ := started(t, "", "")
	b.base = b.fleet.Base(map[string]fleet.View{"s": {ID: b.git.ID()}})
	if b.round(); len(b.w.pulls.open) != 0 || b.forge.asked["pulls"] != 0 {
		t.Errorf("open: %v", b.w.pulls.open)
	}
}

func TestANewConfigurationIsPlannedAnew(t *testing.T) {
	b, _ := started(t, "", "")
	b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: ${MOST:=5}")})
	b.round()
	next := *b.config
	next.Targets = slices.Clone(b.config.Targets)
	next.Targets[0].Vars = map[string]string{"MOST": "7"}
	f := fleet.New(fleet.Options{Config: &next, Accounts: b.accounts, Logger: b.w.o.Logger})
	f.Adopt(b.fleet)
	b.fleet = f
	b.pass()
	b.round()
	p := b.display.last()
	if len(p.Reports) != 1 || len(p.Reports[0].Plan.Steps) != 1 || fmt.Sprint(p.Reports[0].Plan.Steps[0].Changes[0].To) != "7" {
		t.Errorf("told: %s %+v", steps(p), p)
	}
	calls := len(b.aws.Calls())
	if b.round(); len(b.aws.Calls()) != calls {
		t.Error("planned once more")
	}
}

// A comment whose author the forge fails to tell of holds up the others for a while.
func TestACommentOfNobodyHoldsUpNobodyForEver(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	b.round()
	b.publish()
	b.forge.unknown = map[string]bool{"ghost": true}
	b.forge.say(1, "ghost", "weir approve")
	b.forge.say(1, "writer", "weir approve")
	if b.look(); b.approved() != nil {
		t.Fatal("what cannot be told yet is not waited for")
	}
	b.clock = b.clock.Add(holdUp)
	if b.look(); len(b.approved()) != 1 {
		t.Errorf("approved: %v", b.approved())
	}
}

func TestMoreCommentsThanAForgeLists(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	b.round()
	b.publish()
	for range 2 {
		for range 900 {
			b.forge.say(1, "stranger", "hello")
		}
		b.clock = b.clock.Add(20 * time.Second)
	}
	b.forge.say(1, "writer", "weir approve")
	for range 3 {
		b.look()
	}
	if len(b.approved()) != 1 {
		t.Errorf("approved: %v", b.approved())
	}
}

// Strangers who write many commands do not use up what the forge answers.
func TestManyCommandsOfAStranger(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	for range 200 {
		b.forge.say(1, "stranger", "weir plan")
	}
	b.look()
	if asked, marked := b.forge.asked["permission"], len(b.forge.reacted); asked != 1 || marked != mostMarks {
		t.Errorf("asked %d times, marked %d", asked, marked)
	}
}

func TestAPullRequestThatIsGone(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	delete(b.forge.pulls, 1)
	b.forge.version++
	if b.round(); b.display.last().State != report.PullClosed || b.w.pulls.open[1] != nil {
		t.Errorf("told: %+v", b.display.last())
	}
}

// A plan that nobody could approve before a restart, nobody can approve after it.
func TestARestartMakesNothingFitToBeApproved(t *testing.T) {
	refused := func(t *testing.T, b *bench) {
		t.Helper()
		for _, restarts := range []bool{false, true} {
			b.forge.say(1, "writer", "weir approve")
			if restarts {
				b.restart()
			}
			if b.look(); b.approved() != nil {
				t.Fatalf("restart %t: approved %v", restarts, b.approved())
			}
		}
	}
	t.Run("a failing plan", func(t *testing.T) {
		b, _ := started(t, "", ", apply: as-reviewed")
		b.propose(1, map[string]string{
			"o/one/pool.yaml":          pool("one", "maxSize: 3", "maxSize: 5"),
			"o/one/kustomization.yaml": "resources: [pool.yaml, other.yaml]\n",
			"o/one/other.yaml":         pool("other", "ami: {eksLookupType: AmazonLinux2023}", "ami: {id: ami-0123456789abcdef0}"),
		})
		b.round()
		p := b.display.last()
		if p.State != report.PullFailing || len(p.Reports) != 1 || p.Reports[0].Plan == nil {
			t.Fatalf("told: %+v", p)
		}
		// A reader of its comment must not find what a later plan is approved by.
		if p.Digest != "" {
			t.Errorf("it has the digest %s", p.Digest)
		}
		b.forge.say(1, "weir-bot", "marker "+report.DigestMarker(plan.CombinedDigest([]*plan.Plan{p.Reports[0].Plan})))
		b.clock = b.clock.Add(time.Second)
		refused(t, b)
	})
	t.Run("a stale plan", func(t *testing.T) {
		b, _ := started(t, "", ", apply: as-reviewed")
		b.round()
		b.publish()
		b.w.o.Git = noGit{b.w.o.Git}
		b.w.pulls.open[1].asked = true
		if b.round(); b.display.last().State != report.PullPlanned || b.display.last().Stale == "" {
			t.Fatalf("told: %+v", b.display.last())
		}
		refused(t, b)
	})
}

// A comment is obeyed once, whatever becomes of its pull request or of its text between
// two looks.
func TestACommandIsObeyedOnce(t *testing.T) {
	set := func(edit func(*forge.PullRequest)) func(*bench) {
		return func(b *bench) { b.edit(1, func(p *forge.PullRequest) { edit(p); p.UpdatedAt = b.now() }) }
	}
	comment := func(body string) func(*bench) {
		return func(b *bench) { b.forge.comments[0].Body, b.forge.comments[0].UpdatedAt = body, b.now() }
	}
	for name, tc := range map[string][]func(*bench){
		"closed and opened again": {set(func(p *forge.PullRequest) { p.State = forge.Closed }), set(func(p *forge.PullRequest) { p.State = forge.Open })},
		"sent elsewhere and back": {set(func(p *forge.PullRequest) { p.BaseRef = "other" }), set(func(p *forge.PullRequest) { p.BaseRef = "main" })},
		"edited":                  {comment("weir  help "), comment("weir help\n\nplease")},
		"deleted":                 {func(b *bench) { b.forge.comments[0].Number = 99 }},
		"weir starts anew":        {func(b *bench) { b.restart() }},
		"closed, weir starts anew": {
			set(func(p *forge.PullRequest) { p.State = forge.Closed }), func(b *bench) { b.restart() }, set(func(p *forge.PullRequest) { p.State = forge.Open }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := started(t, "", "")
			b.round()
			b.forge.say(1, "writer", "weir help")
			if b.look(); len(b.forge.replies) != 1 {
				t.Fatalf("replies: %q", b.forge.replies)
			}
			for _, change := range tc {
				change(b)
				b.look()
				b.look()
			}
			if len(b.forge.replies) != 1 || len(b.approved()) > 0 {
				t.Errorf("replies: %q, approved %v", b.forge.replies, b.approved())
			}
			b.clock = b.clock.Add(2 * time.Minute)
			b.forge.say(1, "writer", "weir help")
			if b.look(); len(b.forge.replies) != 2 {
				t.Errorf("a later command: replies %q", b.forge.replies)
			}
			set(func(p *forge.PullRequest) { p.State = forge.Closed })(b)
			b.look()
			b.clock = b.clock.Add(time.Hour)
			b.forge.comments = nil
			b.look()
			if known, err := b.w.pulls.all(); err != nil || len(known)+len(b.w.pulls.left) > 0 {
				t.Errorf("remembered for ever: %v, %v, %v", known, b.w.pulls.left, err)
			}
		})
	}
}

// shifting is a forge whose list is read over several pages, while others change it.
type shifting struct {
	*memForge
	list func([]forge.PullRequest) []forge.PullRequest
}

func (s shifting) Pulls(ctx context.Context, after forge.Cursor) ([]forge.PullRequest, forge.Cursor, bool, error) {
	out, next, unchanged, err := s.memForge.Pulls(ctx, after)
	return s.list(out), next, unchanged, err
}

// A list that lacks an open pull request, has it twice, or as it was before, closes none
// and plans none twice.
func TestAListOfAnotherMoment(t *testing.T) {
	for name, list := range map[string]func([]forge.PullRequest) []forge.PullRequest{
		"empty": func([]forge.PullRequest) []forge.PullRequest { return nil },
		"twice": func(l []forge.PullRequest) []forge.PullRequest { return append(l, l...) },
		"with one that was closed": func(l []forge.PullRequest) []forge.PullRequest {
			return append(l, forge.PullRequest{Number: 2, State: forge.Open, BaseRef: "main", HeadSHA: strings.Repeat("a", 40)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, head := started(t, "", "")
			b.round()
			b.w.o.Forge = shifting{b.forge, list}
			for range 3 {
				b.forge.version++
				b.round()
			}
			var told []string
			for _, p := range b.display.shown {
				if p.Number == 1 {
					told = append(told, string(p.State)+" "+p.HeadSHA)
				}
			}
			b.w.o.Forge = b.forge
			b.forge.version++
			b.round()
			if want := []string{string(report.PullPlanned) + " " + head}; !slices.Equal(told, want) || b.w.pulls.open[1] == nil || len(b.w.pulls.open) != 1 {
				t.Errorf("told: %v, open: %v", told, b.w.pulls.open)
			}
		})
	}
}
