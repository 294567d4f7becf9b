package refusals

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// AWS may refuse a step that was sent before a request to try again, and answer after it. The next
// pass tries the step all the same, once.
func TestARetryLiftsWhatAWSRefusesDuringThePass(t *testing.T) {
	var r Record
	key := Key{Target: "blue", Owner: "default/web"}
	v := r.View(start) // a pass starts
	r.Retried(v, nil)
	r.Retry([]string{"default/web"})
	r.Refuse(key, "d", denied(), start)
	v = r.View(start) // the next pass starts
	r.Retried(v, nil)
	if !v.Retry["default/web"] || r.Refused(key, "d", start) != nil {
		t.Fatal("the next pass does not try the step")
	}
	r.Refuse(key, "d", denied(), start)
	r.Retried(r.View(start), nil)
	if r.Refused(key, "d", start) == nil {
		t.Error("a later pass tries the step again")
	}
}

// While a pool waits, the request to try it again stays. That lifts no later refusal.
func TestARequestOfAWaitingPoolLiftsOnce(t *testing.T) {
	var r Record
	key := Key{Target: "blue", Owner: "default/web"}
	r.Retry([]string{"default/web"})
	for n := range 3 {
		r.Retried(r.View(start), map[string]bool{"default/web": true})
		if got := r.Refused(key, "d", start) != nil; got != (n > 0) {
			t.Fatalf("pass %d: refused: %t", n, got)
		}
		r.Refuse(key, "d", denied(), start)
	}
}

// A request to try again lifts the stored entries of launch configurations too, as it does in the
// process that stored them.
func TestARetryBeforeRecallLiftsLaunchConfigurations(t *testing.T) {
	shared := Key{Target: "blue", Owner: step.OwnerOfConfig + "default/shared"}
	wanted := []Wanted{{Target: "blue", Wanted: "w1", Rendered: true}}
	s := step.Step{Verb: step.Delete, Resource: step.LaunchTemplate, Name: "shared", LaunchConfig: "default/shared", Do: step.DeleteLaunchTemplate{}}
	var before Record
	before.Recall(nil, wanted, start)
	before.Refuse(shared, "d", denied(), start)
	for range mostMade {
		before.Wrote("blue", "c1", s, start)
	}
	stored := before.ToStore(wanted, true, start)
	for _, asked := range []bool{false, true} {
		var r Record
		if asked {
			r.Retry([]string{"default/web"})
		}
		r.Recall(stored, wanted, start)
		refused, spent := r.Refused(shared, "d", start) != nil, r.View(start).Spent(s, WritesOf(s, "blue")[0])
		if refused == asked || spent == asked {
			t.Errorf("asked: %t, refused: %t, spent: %t", asked, refused, spent)
		}
	}
}

// A new owner may make its first passes before a target has a render. The stored writes stay stored,
// and count once the target has one.
func TestStoredWritesOutliveAPassWithoutARender(t *testing.T) {
	web := pool("web", 2)
	s := resize(web, 1, 2)
	rendered := []Wanted{{Target: "blue", Wanted: "w1", Rendered: true, Pools: []intent.Pool{*web}}}
	unrendered := []Wanted{{Target: "blue"}}
	var before Record
	before.Recall(nil, rendered, start)
	for range mostUnchanged {
		before.Wrote("blue", "c1", s, start)
	}
	stored := before.ToStore(rendered, true, start)
	for name, tc := range map[string]struct {
		then  []Wanted
		retry string
		spent bool
	}{
		"the same":             {then: rendered, spent: true},
		"something else":       {then: []Wanted{{Target: "blue", Wanted: "w2", Rendered: true, Pools: rendered[0].Pools}}},
		"somebody asked":       {then: rendered, retry: "default/web"},
		"somebody asked other": {then: rendered, retry: "default/db", spent: true},
	} {
		var r Record
		r.Recall(stored, unrendered, start)
		r.Forget(map[string]bool{"blue": true}, true, start)
		if got := r.ToStore(unrendered, true, start); len(got) > 0 {
			t.Errorf("%s: a pass without a render stores %+v", name, got)
		}
		if tc.retry != "" {
			r.Retry([]string{tc.retry})
		}
		r.RecallNew(tc.then, start)
		if got := r.View(start).Spent(s, WritesOf(s, "blue")[0]); got != tc.spent {
			t.Errorf("%s: spent: %t", name, got)
		}
		if got := r.ToStore(tc.then, true, start); (len(got) == 0) != tc.spent {
			t.Errorf("%s: stores %+v", name, got)
		}
	}
}

// While a source cannot be read, some of its targets may be missing. Their entries stay, in the process and
// in the store.
func TestEntriesOutliveAPassWithoutTheirTarget(t *testing.T) {
	key := Key{Target: "blue", Owner: "default/web"}
	web := pool("web", 2)
	s := resize(web, 1, 2)
	blue := []Wanted{{Target: "blue", Wanted: "w1", Rendered: true, Pools: []intent.Pool{*web}}}
	green := []Wanted{{Target: "green", Rendered: true}}
	var before Record
	before.Recall(nil, blue, start)
	before.Refuse(key, "d", denied(), start)
	for range mostUnchanged {
		before.Wrote("blue", "c1", s, start)
	}
	stored := before.ToStore(blue, true, start)
	before.Stored("blue", stored["blue"])
	var after Record
	after.Recall(stored, green, start)
	for name, r := range map[string]*Record{"the same process": &before, "the next owner": &after} {
		for _, all := range []bool{false, true} {
			r.Forget(map[string]bool{"green": true}, all, start)
			if got := r.ToStore(green, all, start); (len(got) > 0) != all {
				t.Errorf("%s, all targets: %t: stores %+v", name, all, got)
			}
			r.RecallNew(blue, start)
			refused, spent := r.Refused(key, "d", start) != nil, r.View(start).Spent(s, WritesOf(s, "blue")[0])
			if refused == all || spent == all {
				t.Errorf("%s, all targets: %t: refused: %t, spent: %t", name, all, refused, spent)
			}
		}
	}
}

// If the store answers only after AWS has refused a step again, the newer entry stays.
func TestALateRecallKeepsNewerRefusals(t *testing.T) {
	key := Key{Target: "blue", Owner: "default/web"}
	wanted := []Wanted{{Target: "blue", Wanted: "w1", Rendered: true}}
	var before Record
	before.Recall(nil, wanted, start)
	before.Refuse(key, "d", denied(), start)
	stored := before.ToStore(wanted, true, start)
	var r Record
	later := start.Add(9 * time.Minute)
	r.Refuse(key, "d", denied(), later)
	r.Recall(stored, wanted, later)
	if r.Refused(key, "d", later.Add(9*time.Minute)) == nil {
		t.Error("the step is tried before its time")
	}
}

// Members of earlier versions stored writes with the first wording of reasons.
func TestARewordedReasonIsTheSameWrite(t *testing.T) {
	for reason, first := range map[string]string{
		"version 3, from version 2: version 2 no longer exists":                "version 3, from version 2: version 2 is not there to go by",
		"2 of 3 machines differ; new machines are launched, as a type changes": "2 of 3 machines differ; machines are launched anew, as a type changes",
		"version 3, from version 2: version 2 is not there to go by":           "version 3, from version 2: version 2 is not there to go by",
	} {
		s := step.Step{Verb: step.Update, Resource: step.LaunchTemplate, Name: "web", Reason: reason, Do: step.CreateLaunchTemplateVersion{}}
		if got, want := WritesOf(s, "blue")[0].from, content.ShortHash([]byte(first)); got != want {
			t.Errorf("%q: %s, want %s", reason, got, want)
		}
	}
}
