package plan

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/step"
)

// A plan goes to the page, the API and the forge at once: encoding it must not
// change it. The race detector sees it if it does.
func TestEncodingAPlanLeavesItAsItIs(t *testing.T) {
	p := &Plan{Target: "blue", Steps: []step.Step{{Verb: step.Create, Name: "web"}, {Verb: step.Delete, Name: "old"}}}
	var wg sync.WaitGroup
	texts := make([]string, 4)
	for i := range texts {
		wg.Go(func() {
			text, err := json.Marshal(p)
			if err != nil {
				t.Error(err)
			}
			texts[i] = string(text)
		})
	}
	wg.Wait()
	for _, text := range texts[1:] {
		if diff := cmp.Diff(texts[0], text); diff != "" {
			t.Errorf("two encodings differ:\n%s", diff)
		}
	}
	if p.Steps[0].Changes != nil {
		t.Error("the plan was changed")
	}
}
