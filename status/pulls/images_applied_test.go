package pulls

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/forge"
)

// Anybody may open a pull request with the content of another one, and push until its plan
// is the latest: its images are not those of the merge.
func TestWhoseImagesAreApplied(t *testing.T) {
	b := newBench(t, "", "")
	b.main(map[string]string{"o/one/pool.yaml": pool("one")})
	b.compose()
	of := func() string {
		d := reconciler.Desired{Policy: model.Policy{Target: "one"}}
		b.w.Images(&d, snapshot.Snapshot{})
		return d.Reviewed["s"].ID
	}
	add := func(number int64, minutes int, id string) {
		b.w.images.byPull[number] = imageRecord{
			Number: number, At: b.now().Add(time.Duration(minutes) * time.Minute), Images: []model.ReviewedImage{{ID: id}}, Targets: map[string]map[string]int{"one": {"s": 0}},
		}
	}
	add(1, 0, "ami-reviewed")
	add(2, 1, "ami-other")
	if got := of(); got != "ami-other" {
		t.Errorf("with nothing merged: %s", got)
	}
	b.w.images.markMerged(1)
	if got := of(); got != "ami-reviewed" {
		t.Errorf("once the forge told of the merge: %s", got)
	}
	// A note is durable.
	if err := b.w.images.read(); err != nil || !b.w.images.byPull[1].Merged {
		t.Errorf("after a restart: %+v, %v", b.w.images.byPull, err)
	}
}

// Two pull requests have the same content, each was planned with the newest image of its
// day, and the forge does not tell yet which of them is merged: Git does.
func TestTheMergedPullRequestsImagesAreApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		merge    func(b *bench, number int64, head string)
		number   int64
		restarts bool
	}{
		"the first, squashed":           {func(b *bench, n int64, head string) { b.squash(n, head) }, 1, false},
		"the first, by a merge commit":  {func(b *bench, n int64, head string) { b.merge(n, head) }, 1, false},
		"the first, known to the last":  {func(b *bench, n int64, head string) { b.squash(n, head) }, 1, true},
		"the second, by a merge commit": {func(b *bench, n int64, head string) { b.merge(n, head) }, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, first, second := withImages(t, "")
			b.again()
			b.compose()
			files := map[string]string{"o/one/pool.yaml": lookedUp("one", false, largeMachine, biggerMachine)}
			heads := map[int64]string{1: b.propose(1, files)}
			b.round()
			shown := b.w.images.byPull[1]
			third := b.newImage(3)
			b.again()
			b.clock = b.clock.Add(time.Minute)
			b.compose()
			heads[2] = b.propose(2, map[string]string{"o/one/pool.yaml": files["o/one/pool.yaml"], "README.md": "of the second"})
			b.round()
			if len(b.w.images.byPull) != 2 {
				t.Fatalf("images of %d pull requests", len(b.w.images.byPull))
			}
			// The first one was not planned again meanwhile.
			b.w.images.put(map[int64]imageRecord{1: shown})
			tc.merge(b, tc.number, heads[tc.number])
			b.forge.pulls[tc.number].State = forge.Open
			want := map[int64]string{1: first + " → " + second, 2: first + " → " + third}[tc.number]
			for _, r := range b.pass() {
				for _, o := range r.Outcomes {
					if r.Target == "one" && o.Status == step.Done {
						t.Errorf("before that is known: %+v", o.Step.Reason)
					}
				}
			}
			b.round()
			if tc.restarts {
				b.restart()
			}
			if got := moves(b.pass())["one"]; got != want {
				t.Errorf("the merge of %d: %s, want %s", tc.number, got, want)
			}
		})
	}
}

// A newer merge's plan counts before the rest of an older merge.
func TestANewerReviewCountsBeforeAnOlderMerge(t *testing.T) {
	b, first, _ := withImages(t, "")
	b.again()
	b.compose()
	files := map[string]string{"o/one/pool.yaml": lookedUp("one", false, largeMachine, biggerMachine)}
	b.propose(1, files)
	b.round()
	older := b.w.images.byPull[1]
	older.Merged, older.MergedAt = true, b.now() // and taken back before it was applied
	delete(b.forge.pulls, 1)
	third := b.newImage(3)
	b.again()
	b.clock = b.clock.Add(time.Minute)
	b.compose()
	head := b.propose(2, files)
	b.round()
	b.w.images.byPull[1] = older
	b.squash(2, head)
	b.forge.pulls[2].State = forge.Open
	b.pass()
	b.round()
	if got, want := moves(b.pass())["one"], first+" → "+third; got != want {
		t.Errorf("the merge: %s, want %s", got, want)
	}
}

func TestImagesOfAForkAreNotKept(t *testing.T) {
	b, _, _ := withImages(t, "")
	b.proposed()
	if len(b.w.images.byPull) != 1 {
		t.Fatalf("images of %d pull requests", len(b.w.images.byPull))
	}
	for number, k := range b.w.pulls.open {
		for _, fork := range []bool{true, false} {
			delete(b.w.images.byPull, number)
			k.pr.Fork = fork
			if b.w.images.storeShown(k, k.shown); (len(b.w.images.byPull) == 0) != fork {
				t.Errorf("fork %t: images of %d", fork, len(b.w.images.byPull))
			}
		}
	}
}
