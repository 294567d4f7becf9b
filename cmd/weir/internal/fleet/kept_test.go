package fleet

import "testing"

// After a reload a target may stand for another path, repository or set of
// values: what was rendered before must not be applied in its name.
func TestAKeptRenderStandsForItsOwnPathOnly(t *testing.T) {
	made := &rendered{path: "overlays/dev", source: "0123456789ab", vars: map[string]string{"A": "1"}}
	same := item{path: "overlays/dev", vars: map[string]string{"A": "1"}}
	same.view.ID = "0123456789ab"
	if !made.of(&same) {
		t.Error("the same path, repository and values were taken for others")
	}
	for name, change := range map[string]func(*item){
		"path":       func(it *item) { it.path = "overlays/prod" },
		"repository": func(it *item) { it.view.ID = "ffffffffffff" },
		"values":     func(it *item) { it.vars = nil },
	} {
		other := same
		change(&other)
		if made.of(&other) {
			t.Errorf("a render of another %s was taken for the item's", name)
		}
	}
}
