package gates

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/statetest"
)

// shareBooks are the books of members that share an engine.
func shareBooks(t *testing.T, n int) (books []*Recorder, members []*statetest.Member) {
	t.Helper()
	memory := coordtest.NewMemory()
	now := time.Now()
	for i := range n {
		m := statetest.Join(t, memory, string(rune('a'+i)))
		books, members = append(books, NewRecorder(m, clock.At(func() time.Time { return now }))), append(members, m)
	}
	return books, members
}

// TestASuspensionWins over an approval, whoever stored either, and however little they know
// of each other: once it is stored, no approved plan begins until somebody resumes. Nor does one
// begin whose approval was taken back, or twice by one.
func TestASuspensionWins(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		books, members := shareBooks(t, 3)
		suspended := map[string]bool{}
		approved, begun := false, false
		digest := strings.Repeat("a", 64)
		subject := rapid.SampledFrom([]string{"", "prod"})
		for range rapid.IntRange(5, 25).Draw(rt, "things") {
			i := rapid.IntRange(0, 2).Draw(rt, "member")
			switch rapid.SampledFrom([]string{"suspend", "resume", "approve", "approve", "unapprove", "begin", "begin", "done", "sync"}).Draw(rt, "do") {
			case "suspend":
				s := subject.Draw(rt, "of")
				if _, err := books[i].Suspend(Suspension{Target: s, Reason: "r", By: "ann"}, time.Hour); err != nil {
					rt.Fatal(err)
				}
				suspended[s] = true
			case "resume":
				s := subject.Draw(rt, "of")
				if _, err := books[i].Resume(s, "", false); err != nil {
					rt.Fatal(err)
				}
				delete(suspended, s)
			case "approve":
				if _, err := books[i].Approve(digest, "bob"); err != nil {
					rt.Fatal(err)
				}
				approved = approved || !begun
			case "unapprove":
				unused, of, err := books[i].Withdraw(digest, "")
				if err != nil || len(unused) > 0 != approved || len(of) > 0 != begun {
					rt.Fatalf("approved %t, begun %t: took back %v and %v, %v", approved, begun, unused, of, err)
				}
				approved, begun = false, false
			case "begin":
				err := books[i].Begin(Grant{Approval: Approval{Digest: digest, Since: time.Now(), Until: time.Now().Add(time.Hour)}, Target: "prod"})
				if (err == nil) != (len(suspended) == 0 && approved) {
					rt.Fatalf("suspended %v, approved %t, begins: %v", suspended, approved, err)
				}
				if err == nil {
					approved, begun = false, true
				}
			case "done":
				if err := books[i].Done("prod"); err != nil {
					rt.Fatal(err)
				}
				begun = false
			case "sync":
				members[i].Sync(t)
			}
		}
		for i, b := range books {
			members[i].Sync(t)
			r := b.Read()
			if r.Lost != nil || len(r.Suspensions) != len(suspended) || (len(r.Grants) > 0) != begun || (len(r.Approvals) > 0) != approved {
				rt.Fatalf("suspended %v, approved %t, begun %t, on record %+v", suspended, approved, begun, r)
			}
			batches := []reconciler.Batch{{Targets: []reconciler.Desired{{Policy: model.Policy{Target: "prod"}}}}}
			Gate(batches, nil, r, Before{}, Pending{}, clock.At(time.Now)())
			if got := batches[0].Targets[0].Policy.Suspended; got != (len(suspended) > 0) {
				rt.Fatalf("suspended %v, held %t", suspended, got)
			}
		}
	})
}

// TestACommandOfAnyMember is known to all once they have read it, and an old replica adds
// nothing twice.
func TestACommandOfAnyMember(t *testing.T) {
	books, members := shareBooks(t, 2)
	if _, err := books[0].Suspend(Suspension{Target: "prod", Reason: "r", By: "ann"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := len(books[1].Read().Suspensions); n != 0 {
		t.Fatalf("the other knows %d before it has read", n)
	}
	// Ending what it has not read yet works all the same.
	if ended, err := books[1].Resume("prod", "", true); err != nil || len(ended) != 1 {
		t.Errorf("ended %v, %v", ended, err)
	}
	members[0].Sync(t)
	if n := len(books[0].Read().Suspensions); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestAMemberWhoseClockIsBehindSuspends what another member was asked to suspend hours ago:
// that member holds it too, for as long as it was asked for.
func TestAMemberWhoseClockIsBehindSuspends(t *testing.T) {
	t.Parallel()
	memory := coordtest.NewMemory()
	now := time.Now()
	began := now
	a, b := statetest.Join(t, memory, "a"), statetest.Join(t, memory, "b")
	owner := NewRecorder(a, func() clock.Moment {
		ticks := now.Sub(began)
		return clock.Moment{Earliest: now, Latest: now, Wall: now, Heard: true, Ticks: ticks, HeardAt: ticks}
	})
	behind := NewRecorder(b, func() clock.Moment {
		at := now.Add(-5 * time.Hour)
		return clock.Moment{Earliest: at, Latest: at, Wall: at}
	})
	if _, err := owner.Suspend(Suspension{Target: "prod", Reason: "r", By: "ann"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	now = now.Add(3 * time.Hour)
	b.Sync(t)
	if _, err := behind.Suspend(Suspension{Target: "prod", Reason: "r", By: "bob"}, 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	a.Sync(t)
	for range 2 {
		if got := owner.Read().Suspensions; len(got) != 1 || got[0].By != "bob" {
			t.Errorf("in force: %+v", got)
		}
		now = now.Add(time.Hour)
	}
}

// TestWhatANewerWeirSays beside an older one holds for that too, though it has words that the older one does not know: members of neighbouring versions
// run beside each other. What the older one does not write stays as it is.
func TestWhatANewerWeirSays(t *testing.T) {
	books, members := shareBooks(t, 2)
	digest := strings.Repeat("a", 64)
	if _, err := books[0].Suspend(Suspension{Target: "prod", Reason: "r", By: "ann"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := books[0].Approve(digest, "bob"); err != nil {
		t.Fatal(err)
	}
	words := func(name string, each func(key string, v map[string]any)) {
		t.Helper()
		bucket, found := state.Bucket[map[string]any]{Name: name}, 0
		if err := members[0].Update(func(tx *state.Tx) error {
			found = 0
			all := map[string]map[string]any{}
			err := bucket.ForEach(tx, "", func(key string, v map[string]any) error { all[key] = v; return nil })
			for key, v := range all {
				found++
				each(key, v)
				err = errors.Join(err, bucket.Put(tx, key, v))
			}
			return err
		}); err != nil || found != 1 {
			t.Fatal(found, err)
		}
	}
	for _, name := range []string{"suspensions", "approvals"} {
		words(name, func(_ string, v map[string]any) { v["newer"] = map[string]any{"than": "this"} })
	}
	members[1].Sync(t)
	if r := books[1].Read(); r.Lost != nil || len(r.Suspensions) != 1 || r.Suspensions[0].Target != "prod" || len(r.Approvals) != 1 || r.Approvals[0].Digest != digest {
		t.Fatalf("the older one reads %+v", r)
	}
	if _, err := books[1].Suspend(Suspension{Target: "dev", Pool: "x/web", Reason: "r", By: "ann"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := books[1].Begin(Grant{Approval: Approval{Digest: digest}, Target: "prod"}); err == nil {
		t.Error("what is suspended begins")
	}
	members[0].Sync(t)
	words("approvals", func(_ string, v map[string]any) {
		if v["newer"] == nil {
			t.Errorf("the older one has cut %v", v)
		}
	})
	if ended, err := books[1].Resume("prod", "", true); err != nil || len(ended) != 1 {
		t.Errorf("ended %v, %v", ended, err)
	}
}
