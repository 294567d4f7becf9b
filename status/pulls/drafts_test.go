package pulls

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/snapshot"
)

// draft is what main holds with other files, as somebody sends it.
func (b *bench) draft(files map[string]string) fleet.Proposal {
	b.t.Helper()
	m := tree.Map{}
	for name := range strings.Lines(b.repo.Git("ls-tree", "-r", "--name-only", "main")) {
		name = strings.TrimSpace(name)
		m[name] = b.repo.Git("show", "main:"+name) + "\n"
	}
	for name, text := range files {
		m[name] = text
	}
	return fleet.Proposal{Source: "s", Owner: "draft of ann", Snapshot: snapshot.Snapshot{Revision: "draft", Tree: m}, Head: &snapshot.Snapshot{}}
}

func (b *bench) drafts() *Drafts {
	return &Drafts{Accounts: b.accounts.ForPlans(), Turns: NewTurns(), Within: time.Minute}
}

// A draft is planned as a pull request from a fork is, and has no digest; of what it
// leaves as it is nothing is asked.
func TestADraftIsPlannedAsAFork(t *testing.T) {
	b, _ := started(t, "", "")
	b.compose()
	d := b.drafts()
	review, reports, err := d.Plan(t.Context(), b.base, b.draft(nil))
	if err != nil || len(review.Touched) != 0 || len(reports) != 0 {
		t.Fatalf("what is followed: %v, %d reports, %v", review.Touched, len(reports), err)
	}
	_, reports, err = d.Plan(t.Context(), b.base, b.draft(large(2, 7)))
	if err != nil || len(reports) != 1 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	if r := reports[0]; r.Plan == nil || r.Plan.Empty() || r.Plan.Digest() != "" || r.Revision != "" || r.Plan.Runnable() == 0 {
		t.Errorf("%+v", r)
	}
}

// weir plans one draft of a sender at a time, and two in all; pull requests that hold
// much come before drafts that do.
func TestDraftsWaitForEachOther(t *testing.T) {
	d := &Drafts{}
	ann, err := d.Begin("ann")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Begin("ann"); !errors.Is(err, ErrBusy) {
		t.Errorf("a second one of ann: %v", err)
	}
	bob, err := d.Begin("bob")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Begin("cid"); !errors.Is(err, ErrBusy) {
		t.Errorf("a third one: %v", err)
	}
	ann()
	bob()
	if end, err := d.Begin("cid"); err != nil {
		t.Errorf("once they are done: %v", err)
	} else {
		end()
	}

	b, _ := started(t, "", "")
	b.compose()
	d = b.drafts()
	d.Turns.heavy <- struct{}{} // a pull request's
	if _, _, err := d.Plan(t.Context(), b.base, b.draft(heavy())); !errors.Is(err, ErrBusy) {
		t.Errorf("beside one that holds much: %v", err)
	}
	<-d.Turns.heavy
	if _, reports, err := d.Plan(t.Context(), b.base, b.draft(heavy())); err != nil || len(reports) != 1 {
		t.Errorf("after it: %d reports, %v", len(reports), err)
	}
	if len(d.Turns.heavy)+len(d.Turns.quick)+len(d.Turns.slow) != 0 {
		t.Error("it keeps its turn")
	}
	d.Within = time.Nanosecond
	if _, _, err := d.Plan(t.Context(), b.base, b.draft(large(2, 7))); err == nil || !strings.Contains(err.Error(), "was not rendered within") {
		t.Errorf("without time: %v", err)
	}
}

// A draft is looked at with roles for plans alone, and with none where there is none.
func TestADraftNeedsARoleForPlans(t *testing.T) {
	b, _ := started(t, "", "")
	b.config.Endpoint = "" // AWS itself
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	b.compose()
	review, reports, err := b.drafts().Plan(t.Context(), b.base, b.draft(large(2, 7)))
	if !errors.Is(err, ErrRoleless) || review != nil || reports != nil {
		t.Errorf("%v, %v, %v", review, reports, err)
	}
	// weir reports unknown targets before that.
	p := b.draft(large(2, 7))
	p.Only = []string{"nothing"}
	if review, reports, err = b.drafts().Plan(t.Context(), b.base, p); err != nil || len(review.Names) == 0 || reports != nil {
		t.Errorf("%v, %v, %v", review, reports, err)
	}
}
