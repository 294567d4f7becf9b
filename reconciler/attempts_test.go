package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/refusals"
)

// tries keeps what was tried in vain as JSON, as an engine does.
type tries struct {
	kept   map[string][]byte
	writes int
	fails  bool
}

func (k *tries) Recall() (map[string]refusals.Stored, error) {
	out := map[string]refusals.Stored{}
	for target, data := range k.kept {
		var t refusals.Stored
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, err
		}
		out[target] = t
	}
	return out, nil
}

func (k *tries) Keep(target string, t refusals.Stored) error {
	if k.fails {
		return errors.New("the engine does not answer")
	}
	k.writes++
	if delete(k.kept, target); t.Empty() {
		return nil
	}
	data, err := json.Marshal(t)
	if err == nil && k.kept == nil {
		k.kept = map[string][]byte{}
	}
	k.kept[target] = data
	return err
}

// owned makes a pass of the owner, and returns the writes of it that AWS had to answer.
func (w *world) owned(k *tries, d reconciler.Desired) (*plan.Report, map[string]int) {
	w.t.Helper()
	w.srv.ResetCalls()
	reports, err := w.scope.PassBatch(context.Background(), reconciler.Batch{Targets: []reconciler.Desired{d}, Attempts: k})
	if err != nil {
		w.t.Fatal(err)
	}
	w.clock.Advance(10 * time.Second)
	return reports[0], w.writes()
}

// The next owner does not try a step that AWS refused the previous one, and says so. It tries once that is due, Git wants something else, or somebody
// asks for it.
func TestTheNextOwnerDoesNotTryWhatWasRefused(t *testing.T) {
	const update = "autoscaling:UpdateAutoScalingGroup"
	web := groupPool("web", "m5.large", 2)
	before := target("blue", web)
	larger := groupPool("web", "m5.large", 2)
	larger.Group.MaxSize = 20
	largest := groupPool("web", "m5.large", 2)
	largest.Group.MaxSize = 30
	after, other := target("blue", larger), target("blue", largest)
	for name, tc := range map[string]struct {
		then  func(*world)
		wants reconciler.Desired
		tries bool
	}{
		"at once":          {func(*world) {}, after, false},
		"once it is due":   {func(w *world) { w.clock.Advance(11 * time.Minute) }, after, true},
		"another commit":   {func(*world) {}, other, true},
		"somebody asks":    {func(w *world) { w.scope.Retry([]string{"default/web"}) }, after, true},
		"its clock is off": {func(w *world) { w.clock.Advance(-3 * time.Hour) }, after, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, k := newWorld(t), &tries{}
			w.settle(before)
			w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "UpdateAutoScalingGroup", Code: "AccessDenied", Status: 403, Times: -1})
			k.fails = true
			if _, wrote := w.owned(k, after); wrote[update] != 1 || len(k.kept) != 0 {
				t.Fatalf("%v, %s", wrote, k.kept)
			}
			k.fails = false // what could not be kept is kept by the next pass
			if _, wrote := w.owned(k, after); wrote[update] != 0 || len(k.kept) != 1 {
				t.Fatalf("%v, %s", wrote, k.kept)
			}
			w.restart()
			tc.then(w)
			r, wrote := w.owned(k, tc.wants)
			if got := wrote[update] > 0; got != tc.tries {
				t.Errorf("tried: %t; %v", got, wrote)
			}
			f := r.Failures()
			if len(f) != 1 || !f[0].Parked || f[0].Err.Code != "AccessDenied" || f[0].Lift == "" {
				t.Errorf("%+v", f)
			}
			// An owner whose clock is behind does not leave it alone for longer.
			w.clock.Advance(11 * time.Minute)
			if _, wrote = w.owned(k, tc.wants); wrote[update] != 1 {
				t.Errorf("it is not tried any more: %v", wrote)
			}
			w.srv.Faults().Clear()
			w.clock.Advance(11 * time.Minute)
			w.owned(k, tc.wants)
			if w.owned(k, tc.wants); len(k.kept) != 0 {
				t.Errorf("what was done is kept as refused: %s", k.kept)
			}
			n := k.writes
			if w.owned(k, tc.wants); k.writes != n {
				t.Error("a pass at rest keeps what is known")
			}
		})
	}
}

// A change that AWS takes and does not keep is not written twice by each owner.
func TestTheNextOwnerKnowsWhatAWSDoesNotKeep(t *testing.T) {
	w, k := newWorld(t), &tries{}
	before, after := groupPool("web", "m5.large", 2), groupPool("web", "m5.large", 2)
	w.settle(target("blue", before))
	w.through(&tampering{operation: "UpdateAutoScalingGroup", member: "MaxSize", how: tamperings["drops"]})
	after.Group.MaxSize = 20
	writes := 0
	for range 6 {
		for range 3 {
			_, wrote := w.owned(k, target("blue", after))
			writes += wrote["autoscaling:UpdateAutoScalingGroup"]
		}
		w.restart()
		unrendered := target("blue")
		unrendered.Set, unrendered.Whole = nil, false
		w.owned(k, unrendered) // the new owner starts before it has rendered the target
	}
	if writes > 2 {
		t.Errorf("written %d times", writes)
	}
	r, _ := w.owned(k, target("blue", after))
	if len(notTaken(r)) != 1 {
		t.Errorf("it is not said: %v", r.Diagnostics)
	}
	// Git wants something else: it is written.
	after.Group.MaxSize = 21
	d := target("blue", after)
	d.Wanted = "another"
	w.restart()
	if _, wrote := w.owned(k, d); wrote["autoscaling:UpdateAutoScalingGroup"] != 1 {
		t.Errorf("%v", wrote)
	}
}
