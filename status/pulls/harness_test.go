package pulls

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	moments "github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
)

func pool(name string, changes ...string) string {
	return strings.NewReplacer(changes...).Replace(fleettest.Pool(name, "${MAX:=3}", "3"))
}

// bench is a watcher with all that is around it: Git over HTTP, renders and an AWS
// are real. Its clock stands still.
type bench struct {
	t         *testing.T
	dir       string // the state directory
	repo      *sourcetest.Repo
	git       *source.Git
	aws       *awsemu.Server
	awsClock  *awsemu.ManualClock
	fleet     *fleet.Fleet
	accounts  *accounts.Set
	config    *fleet.Config
	policy    Policy
	base      *fleet.Base
	forge     *memForge
	display   *memDisplay
	recorder  *gates.Recorder
	db        *state.DB
	clock     time.Time
	w         *Watcher
	events    []events.Event
	withdrawn [][]string
	bells     int
	// within is how long it may take to find out what a plan would do: no time if 0.
	within time.Duration
	// free lets run what waits for an approval.
	free bool
	// message is that of merges, proposal that of the commits of pull requests.
	message, proposal string
}

const targets = "- {name: '{1}', path: 'o/*', region: eu-west-1, prune: {enabled: true}EXTRA}\n"

func newBench(t *testing.T, pullRequests, extra string) *bench {
	t.Helper()
	clock := awsemu.NewManualClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	emu, err := awsemu.New(awsemu.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu)
	t.Cleanup(server.Close)
	b := &bench{t: t, dir: t.TempDir(), repo: sourcetest.New(t), aws: emu, awsClock: clock}
	b.open(b.repo.URL(), server.URL, pullRequests, extra)
	return b
}

// open opens everything around the watcher, with a repository and an AWS that are there.
func (b *bench) open(repo, aws, pullRequests, extra string) {
	t := b.t
	t.Helper()
	b.display, b.clock = &memDisplay{}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b.forge = &memForge{pulls: map[int64]*forge.PullRequest{}, levels: map[string]forge.Level{"writer": forge.Write, "reader": forge.Read}, asked: map[string]int{}, now: b.now}
	b.config = &fleet.Config{Instance: "a", Sources: []string{"s"}, Targets: fleettest.Targets(t, b.dir, strings.Replace(targets, "EXTRA", extra, 1)), KeepVersions: 10, Endpoint: aws}
	if err := yaml.Unmarshal([]byte("{"+pullRequests+"}"), &b.policy); err != nil {
		t.Fatal(err)
	}
	b.policy.SetDefaults()
	b.openAccounts()
	var err error
	if b.git, err = source.New(source.Config{Name: "s", URL: repo, Ref: source.Ref{Branch: "main"}, Dir: t.TempDir()}, source.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.git.Close)
	b.openState()
	t.Cleanup(func() { _ = b.db.Close() })
}

// openAccounts opens accounts whose answers grow old by AWS's clock, and a fleet over
// them. By this machine's clock all the minutes of a rollout would pass within one.
func (b *bench) openAccounts() {
	log, now := slog.New(slog.DiscardHandler), time.Now
	if b.awsClock != nil {
		now = b.awsClock.Now
	}
	b.accounts = accounts.New(accounts.Options{Logger: log, Getenv: func(string) string { return "" }, Now: now})
	b.fleet = fleet.New(fleet.Options{Config: b.config, Accounts: b.accounts, Logger: log})
}

// openState opens the state directory, and makes the watcher that uses it.
func (b *bench) openState() {
	b.t.Helper()
	var err error
	if b.db, err = state.Open(b.dir); err != nil {
		b.t.Fatal(err)
	}
	b.recorder = gates.NewRecorder(b.db, moments.At(b.now))
	b.restart()
}

func (b *bench) now() time.Time { return b.clock }

// restart makes the watcher anew, as a new process does.
func (b *bench) restart() {
	b.t.Helper()
	var err error
	b.w, err = New(Options{
		Source: "s", Forge: b.forge, Git: b.git, Base: func() *fleet.Base { return b.base }, Accounts: b.accounts.ForPlans(),
		Follows: func(ref string) bool { return ref == "refs/heads/main" }, Policy: b.policy, Display: b.display,
		Approver: b.recorder, Approved: func() { b.bells++ }, Withdrawn: func(targets []string) { b.withdrawn = append(b.withdrawn, targets) }, DB: b.db, Marker: "marker", Within: cmp.Or(b.within, 1), Interval: 30 * time.Second, Turns: NewTurns(),
		Event: func(e events.Event) { b.events = append(b.events, e) }, Logger: slog.New(slog.DiscardHandler), Now: b.now,
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// main commits to the followed branch.
func (b *bench) main(files map[string]string) string {
	b.t.Helper()
	b.repo.Switch("main")
	b.repo.Write(files)
	return b.repo.Commit("on main")
}

// propose commits to a branch from main, or from itself, and opens a pull request.
func (b *bench) propose(number int64, files map[string]string, edit ...func(*forge.PullRequest)) string {
	b.t.Helper()
	branch := fmt.Sprintf("pull-%d", number)
	if b.forge.pulls[number] == nil {
		b.repo.Branch(branch, b.repo.Tip("main"))
	}
	b.repo.Switch(branch)
	b.repo.Write(files)
	head := b.repo.Commit(cmp.Or(b.proposal, "a proposal"))
	b.repo.Git("update-ref", fmt.Sprintf("refs/pull/%d/head", number), head)
	p := b.forge.pulls[number]
	if p == nil {
		p = &forge.PullRequest{Number: number, Title: "a title", Author: "author", State: forge.Open, BaseRef: "main", WebURL: "https://h/o/r/pulls/1"}
		b.forge.pulls[number] = p
	}
	p.HeadSHA = head
	for _, e := range edit {
		e(p)
	}
	b.forge.version++
	return head
}

// compose has the watcher see what main holds, as it is before each pass.
func (b *bench) compose() []reconciler.Batch {
	b.t.Helper()
	snap, err := b.git.Latest(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	views := map[string]fleet.View{"s": {ID: b.git.ID(), Snapshot: snap, At: b.git.At}}
	c, err := b.fleet.Compose(b.t.Context(), views)
	if err != nil {
		b.t.Fatal(err)
	}
	b.accounts.Attach(b.t.Context(), c.Batches)
	b.base = b.fleet.Base(views)
	b.w.Moved()
	for _, batch := range c.Batches {
		for i := range batch.Targets {
			b.w.Rule(&batch.Targets[i], snap)
			b.w.Images(&batch.Targets[i], snap)
		}
	}
	return c.Batches
}

// pass composes and applies what main holds, and hands the reports on.
func (b *bench) pass() []*plan.Report {
	b.t.Helper()
	var out []*plan.Report
	for _, batch := range b.compose() {
		if b.free {
			for i := range batch.Targets {
				batch.Targets[i].Policy.Gates = model.Gates{}
			}
		}
		for _, r := range reconciler.RunBatch(b.t.Context(), batch, reconciler.Apply) {
			b.w.Reported(r)
			out = append(out, r)
		}
	}
	return out
}

// converge makes passes until nothing is left to do.
func (b *bench) converge() {
	b.t.Helper()
	b.free = true
	defer func() { b.free = false }()
	var last []string
	for range 40 {
		done := true
		last = nil
		for _, r := range b.pass() {
			if r.Err != nil {
				b.t.Fatal(r.Err)
			}
			if done = done && r.Converged(); !r.Converged() {
				last = append(last, fmt.Sprint(r.Target, r.Diagnostics, r.Outcomes, r.Pools))
			}
		}
		if done {
			return
		}
		b.awsClock.Advance(time.Minute)
	}
	b.t.Fatalf("the fleet does not converge: %+v", last)
}

// round lets time pass and the watcher look.
func (b *bench) round() {
	b.t.Helper()
	b.clock = b.clock.Add(31 * time.Second)
	b.w.round(b.t.Context())
	b.finish()
}

// finish waits for the plans under way and tells their results.
func (b *bench) finish() {
	b.t.Helper()
	for b.w.planner.under > 0 {
		b.w.planner.finish(b.t.Context(), <-b.w.planner.finished)
	}
}

// merge merges a pull request as a forge does, with other files in the commit where the
// merge was made by hand.
func (b *bench) merge(number int64, head string, other ...map[string]string) string {
	b.t.Helper()
	sha := b.mergeCommit(head, other...)
	b.merged(number, sha)
	return sha
}

// mergeCommit is merge of which the forge does not know.
func (b *bench) mergeCommit(head string, other ...map[string]string) string {
	b.t.Helper()
	b.repo.Switch("main")
	before := b.repo.Tip("main")
	tree := b.repo.Git("merge-tree", "--write-tree", before, head)
	for _, files := range other {
		b.repo.Branch("main", b.repo.Git("commit-tree", tree, "-p", before, "-m", "for its files"))
		b.repo.Write(files)
		tree = b.repo.Git("rev-parse", b.repo.Commit("by hand")+"^{tree}")
	}
	sha := b.repo.Git("commit-tree", tree, "-p", before, "-p", head, "-m", cmp.Or(b.message, "merge"))
	b.repo.Branch("main", sha)
	return sha
}

// merged has the forge say that a pull request was merged as a commit.
func (b *bench) merged(number int64, sha string) {
	p := b.forge.pulls[number]
	p.State, p.MergeSHA, p.UpdatedAt = forge.Merged, sha, b.now()
	b.forge.version++
}

// squash merges a pull request as one commit.
func (b *bench) squash(number int64, head string) string {
	b.t.Helper()
	sha := b.squashCommit(head)
	b.merged(number, sha)
	return sha
}

// squashCommit is squash of which the forge does not know.
func (b *bench) squashCommit(head string) string {
	b.t.Helper()
	tree := b.repo.Git("merge-tree", "--write-tree", b.repo.Tip("main"), head)
	sha := b.repo.Git("commit-tree", tree, "-p", b.repo.Tip("main"), "-m", cmp.Or(b.message, "squashed"))
	b.repo.Branch("main", sha)
	return sha
}

// drift changes a group in AWS past weir.
func (b *bench) drift(name string) {
	b.t.Helper()
	form := "Action=UpdateAutoScalingGroup&Version=2011-01-01&AutoScalingGroupName=" + name + "&MaxSize=2"
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20260101/eu-west-1/autoscaling/aws4_request, SignedHeaders=host, Signature=0")
	b.aws.ServeHTTP(httptest.NewRecorder(), req)
}
