package pulls

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
)

// look has the watcher look at once, as a webhook does.
func (b *bench) look() {
	b.t.Helper()
	b.w.Changed(1)
	b.clock = b.clock.Add(time.Second)
	b.w.round(b.t.Context())
	b.finish()
}

// publish is the comment that the teller's forge shows now.
func (b *bench) publish() {
	b.forge.say(1, "weir-bot", "marker "+report.DigestMarker(b.display.last().Digest))
	b.clock = b.clock.Add(time.Second)
}

func (b *bench) approved() []string {
	b.t.Helper()
	r := b.recorder.Read()
	if r.Lost != nil {
		b.t.Fatal(r.Lost.Why)
	}
	var out []string
	for _, a := range r.Approvals {
		out = append(out, a.Digest+" "+a.By)
	}
	return out
}

func TestApproveByComment(t *testing.T) {
	b, head := started(t, "", ", apply: as-reviewed")
	b.round()
	p := b.display.last()
	if !p.AsReviewed || p.Digest == "" {
		t.Fatalf("told: %+v", p)
	}
	b.publish()
	id := b.forge.say(1, "writer", "weir approve\n")
	b.look()
	want := []string{p.Reports[0].Plan.Digest() + " writer on gitea"}
	if diff := cmp.Diff(want, b.approved()); diff != "" {
		t.Error(diff)
	}
	if b.display.last().Approved != "writer" || b.bells != 1 || !slices.Contains(b.forge.reacted, "2 +1") || id != 2 {
		t.Errorf("told %+v, reacted %v", b.display.last(), b.forge.reacted)
	}
	// Once only, also over a restart; and it stays approved.
	b.restart()
	b.look()
	b.look()
	if len(b.forge.reacted) != 1 || b.display.last().Approved != "writer" {
		t.Errorf("reacted %v, told %+v", b.forge.reacted, b.display.last())
	}
	// The digest is the one that holds the steps of the merge.
	b.merge(1, head)
	if got := b.pass(); got[0].Plan.Digest() != p.Reports[0].Plan.Digest() {
		t.Errorf("after the merge: %s", got[0].Plan.Digest())
	}
	// Another commit needs an approval of its own.
}

func TestAnApprovalIsOfWhatWasShown(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	b.round()
	b.publish()
	old := b.display.last().Digest
	b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 9")})
	b.forge.say(1, "writer", "weir approve")
	b.look()
	if got := b.approved(); got != nil {
		t.Fatalf("a plan that nobody had seen was approved: %v", got)
	}
	// The forge does not show the new plan yet.
	b.look()
	b.forge.say(1, "writer", "weir approve")
	b.look()
	if got := b.approved(); got != nil {
		t.Fatalf("a plan that nobody had seen was approved: %v", got)
	}
	b.publish()
	b.forge.say(1, "writer", "weir approve "+old)
	b.look()
	if got := b.approved(); got != nil {
		t.Fatalf("an old plan was approved: %v", got)
	}
	b.forge.say(1, "writer", "weir approve "+b.display.last().Digest)
	b.look()
	if got := b.approved(); len(got) != 1 {
		t.Errorf("approved: %v; replies: %q", got, b.forge.replies)
	}
	for i, want := range []string{"has no plan to approve", "changed at the time", "No plan of this pull request has the digest"} {
		if i >= len(b.forge.replies) || !strings.Contains(b.forge.replies[i], want) {
			t.Errorf("reply %d: %q", i, b.forge.replies)
		}
	}
}

// TestUnapproveByComment takes back what was approved here, of earlier commits too, and nothing
// that was approved elsewhere.
func TestUnapproveByComment(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	b.round()
	b.publish()
	elsewhere := strings.Repeat("e", 64)
	if _, err := b.recorder.Approve(elsewhere, "ann"); err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		t.Helper()
		b.forge.say(1, "writer", text)
		b.look()
	}
	say("weir unapprove")
	if len(b.forge.replies) != 1 || !strings.Contains(b.forge.replies[0], "No approval given here is in force") || len(b.withdrawn) > 0 {
		t.Errorf("before anything was approved: %q", b.forge.replies)
	}
	say("weir approve")
	if got := b.approved(); len(got) != 2 || b.display.last().Approved != "writer" {
		t.Fatalf("approved: %v, told %+v", got, b.display.last())
	}
	say("weir unapprove " + elsewhere)
	if got := b.approved(); len(got) != 2 {
		t.Errorf("what was approved elsewhere: %v", got)
	}
	b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 9")})
	b.look()
	b.publish()
	say("weir approve")
	if got := b.approved(); len(got) != 3 {
		t.Fatalf("approved: %v", got)
	}
	b.restart()
	b.look()
	b.forge.say(1, "reader", "weir unapprove")
	b.look()
	if got := b.approved(); len(got) != 3 {
		t.Errorf("a reader took back: %v", got)
	}
	say("weir unapprove")
	if got := b.approved(); len(got) != 1 || !strings.HasPrefix(got[0], elsewhere) {
		t.Errorf("left: %v", got)
	}
	b.look()
	if b.display.last().Approved != "" {
		t.Errorf("told: %+v", b.display.last())
	}
}

// A plan is of the branch that it was shown for, whether or not the list was read
// since the pull request goes into another one.
func TestNoApprovalOfARetargetedPullRequest(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	b.round()
	b.publish()
	b.forge.pulls[1].BaseRef = "release" // of which the list, by its version, does not tell
	b.forge.say(1, "writer", "weir approve")
	b.look()
	if got := b.approved(); got != nil {
		t.Fatalf("approved: %v", got)
	}
	if b.round(); b.display.last().State != report.PullClosed || b.w.pulls.open[1] != nil {
		t.Errorf("told: %+v", b.display.last())
	}
}

func TestWhoMayCommand(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	b.round()
	b.publish()
	for _, who := range []string{"reader", "stranger", "author"} {
		b.forge.say(1, who, "weir approve")
		b.forge.say(1, who, "weir plan")
	}
	told := len(b.display.shown)
	b.look()
	if got := b.approved(); got != nil || len(b.display.shown) != told {
		t.Errorf("approved %v", got)
	}
	if want := 6; len(b.forge.reacted) != want || len(b.forge.replies) != 0 {
		t.Errorf("reacted %v, replied %q", b.forge.reacted, b.forge.replies)
	}
	// Rights are read when they are used.
	b.forge.levels["reader"] = forge.Write
	b.forge.say(1, "reader", "weir approve")
	if b.look(); len(b.approved()) != 1 {
		t.Error("a right that was given does not count")
	}
}

func TestHelpIsNoFlood(t *testing.T) {
	b, _ := started(t, "", "")
	b.round()
	for range 5 {
		b.forge.say(1, "reader", "weir help")
		b.forge.say(1, "reader", "weir unknown thing")
	}
	b.look()
	if len(b.forge.replies) != 1 || !strings.Contains(b.forge.replies[0], "weir approve") {
		t.Errorf("replies: %q", b.forge.replies)
	}
	b.forge.say(1, "weir-bot", "weir help")
	b.clock = b.clock.Add(time.Hour)
	if b.look(); len(b.forge.replies) != 1 {
		t.Error("weir obeys itself")
	}
}

func TestAForkIsPlannedForAMaintainer(t *testing.T) {
	fork := func(p *forge.PullRequest) { p.Fork = true }
	b, _ := started(t, "forks: {allowBy: [comment]}", "", fork)
	// Opened and commented between two looks: who commented may have read another commit.
	b.forge.say(1, "writer", "weir plan")
	b.round()
	if p := b.display.last(); p.State != report.PullWaiting || len(b.forge.replies) != 1 {
		t.Fatalf("told: %+v", p)
	}
	b.forge.say(1, "reader", "weir plan")
	if b.look(); b.display.last().State != report.PullWaiting {
		t.Fatalf("told: %+v", b.display.last())
	}
	b.forge.say(1, "writer", "weir plan")
	if b.look(); b.display.last().State != report.PullPlanned {
		t.Fatalf("told: %+v", b.display.last())
	}
	b.restart()
	if b.look(); b.display.last().State != report.PullPlanned {
		t.Fatalf("after a restart: %+v", b.display.last())
	}
	// A later push needs it again.
	b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 9")})
	if b.look(); b.display.last().State != report.PullWaiting {
		t.Fatalf("after a push: %+v", b.display.last())
	}
	// One that comes together with the comment, too.
	b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 10")})
	b.forge.say(1, "writer", "weir plan")
	if b.look(); b.display.last().State != report.PullWaiting {
		t.Fatalf("after a push at the same time: %+v", b.display.last())
	}
}

func TestACommentAllowsNoForkUnlessConfigured(t *testing.T) {
	b, _ := started(t, "forks: {allowBy: [label]}", "", func(p *forge.PullRequest) { p.Fork = true })
	b.round()
	b.forge.say(1, "writer", "weir plan")
	if b.look(); b.display.last().State != report.PullWaiting || !strings.Contains(b.forge.replies[0], "does not allow it") {
		t.Fatalf("told: %+v, %q", b.display.last(), b.forge.replies)
	}
}

func TestALabelAllowsTheCommitItWasSetFor(t *testing.T) {
	b, _ := started(t, "forks: {allowBy: [label]}", "", func(p *forge.PullRequest) { p.Fork, p.Labels = true, []string{"weir-plan"} })
	wants := func(when string, want report.PullState) {
		t.Helper()
		b.forge.version++
		if b.look(); b.display.last().State != want {
			t.Fatalf("%s: %+v", when, b.display.last())
		}
	}
	wants("set before weir saw the commit", report.PullWaiting)
	b.forge.pulls[1].Labels = nil
	wants("away", report.PullWaiting)
	b.forge.pulls[1].Labels = []string{"weir-plan"}
	wants("set again", report.PullPlanned)
	b.propose(1, map[string]string{"o/one/pool.yaml": pool("one", "maxSize: 3", "maxSize: 9")})
	wants("pushed", report.PullWaiting)
	b.restart()
	wants("a restart", report.PullWaiting)
}

// weir asks again if the forge cannot answer; a command that the forge refuses holds up nobody.
func TestACommandIsNotLost(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	b.round()
	b.publish()
	b.forge.say(1, "writer", "weir approve")
	b.forge.err = &forgehttp.Error{Fault: forgehttp.FaultBusy, Message: "away"}
	b.look()
	b.forge.err = nil
	if b.look(); len(b.approved()) != 1 {
		t.Errorf("approved: %v", b.approved())
	}
}

func TestCommentsFromBeforeWeirAreNotActedOn(t *testing.T) {
	b, _ := started(t, "", ", apply: as-reviewed")
	b.forge.say(1, "writer", "weir approve")
	b.clock = b.clock.Add(time.Hour)
	for range 3 {
		b.round()
	}
	if b.approved() != nil || b.forge.reacted != nil {
		t.Errorf("approved %v, reacted %v", b.approved(), b.forge.reacted)
	}
}
