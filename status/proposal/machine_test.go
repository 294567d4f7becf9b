package proposal

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/status/forge"
)

// TestNobodyIsOverwhelmed: whatever is wanted, whatever people do and whatever fails, there is at
// most one pull request, it is changed at most as often as configured, what somebody closed is not
// proposed again, and what somebody else pushed to is left alone.
func TestNobodyIsOverwhelmed(t *testing.T) {
	store, n := newStore(t), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		w := newModel(t.Fatalf, store, fmt.Sprint(n))
		declined := map[string]bool{}
		foreign := ""
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.now.Time = w.now.Time.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour)
			w.want = rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "want")
			w.unknown = rapid.IntRange(0, 5).Draw(t, "unknown") == 0
			if rapid.IntRange(0, 3).Draw(t, "head") == 0 {
				w.now.Head, w.moved = "head of "+w.now.Time.String(), rapid.Bool().Draw(t, "moved")
			}
			w.fails, w.lost = rapid.SampledFrom([]string{"", "", "push", "open", "edit", "close"}).Draw(t, "fails"), rapid.Bool().Draw(t, "lost")
			if n := len(w.pulls); n > 0 && w.pulls[n-1].State == forge.Open {
				p := &w.pulls[n-1]
				switch rapid.IntRange(0, 10).Draw(t, "people") {
				case 0:
					p.State, w.branch = forge.Merged, ""
				case 1:
					p.State, w.branch = forge.Closed, ""
					if all, err := w.m.Read(w.store); err != nil || len(all) == 0 {
						t.Fatal(err)
					} else if all[0].Print != "" && all[0].Closing == "" {
						declined[all[0].Print] = true
					}
				case 2:
					w.push()
					foreign = w.branch
				}
				if p.State != forge.Open {
					foreign = ""
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
				w.restart()
			}
			before, shown := len(w.pulls), w.shown
			e := w.turn()
			if foreign != "" && (w.branch != foreign || w.shown != shown || len(w.pulls) != before) {
				t.Fatalf("somebody else's is changed: %+v", e)
			}
			if len(w.pulls) > before && declined[w.want] {
				t.Fatalf("%s was turned down, and is proposed again: %+v", w.want, e)
			}
			if e.Phase == Open && e.Said == e.Commit && e.Commit != w.branch {
				t.Fatalf("the text is of %s, the branch is at %s", e.Said, w.branch)
			}
		}
		for i := 1; i < len(w.writes); i++ {
			if w.writes[i].Sub(w.writes[i-1]) < daily {
				t.Fatalf("written at %v", w.writes)
			}
		}
	})
}

// TestWhatIsDoneNext shows each situation with what follows from it.
func TestWhatIsDoneNext(t *testing.T) {
	open := func(w *model) { w.want = "a"; w.turn(); w.events = nil; w.now.Time = w.now.Time.Add(daily) }
	store := newStore(t)
	for name, tt := range map[string]struct {
		do    func(w *model)
		phase Phase
		text  string // of the pull request
		told  string
	}{
		"nothing to propose":                  {func(*model) {}, Wanted, "", ""},
		"something to propose":                {func(w *model) { w.want = "a" }, Open, "a", "opened"},
		"open, as it is":                      {open, Open, "a", ""},
		"open, and another draft":             {func(w *model) { open(w); w.want = "b" }, Open, "b", "updated"},
		"open, and another draft too soon":    {func(w *model) { open(w); w.want = "b"; w.now.Time = w.now.Time.Add(-time.Hour) }, Open, "a", ""},
		"open, and its files were changed":    {func(w *model) { open(w); w.now.Head, w.moved = "next", true }, Open, "a", "updated"},
		"open, and other files were changed":  {func(w *model) { open(w); w.now.Head = "next" }, Open, "a", ""},
		"open, not needed":                    {func(w *model) { open(w); w.want = "" }, Obsolete, "a", "closed"},
		"open, not needed, soon":              {func(w *model) { open(w); w.want = ""; w.now.Time = w.now.Time.Add(-time.Hour) }, Obsolete, "a", "closed"},
		"open, and it is not known":           {func(w *model) { open(w); w.want = ""; w.unknown = true }, Open, "a", ""},
		"somebody else's, and another draft":  {func(w *model) { open(w); w.push(); w.want = "b" }, Theirs, "a", "left"},
		"somebody else's, not needed":         {func(w *model) { open(w); w.push(); w.want = "" }, Theirs, "a", "left"},
		"somebody else's, who took it back":   {func(w *model) { open(w); was := w.branch; w.push(); w.turn(); w.branch, w.want = was, "b" }, Theirs, "a", "left"},
		"merged":                              {func(w *model) { open(w); w.pulls[0].State = forge.Merged; w.want = "" }, Merged, "a", "closed"},
		"merged, and another draft too soon":  {func(w *model) { open(w); w.pulls[0].State = forge.Merged; w.want = "b" }, Merged, "a", "closed"},
		"closed by somebody":                  {func(w *model) { open(w); w.pulls[0].State = forge.Closed }, Closed, "a", "closed"},
		"a forge that does not know the head": {func(w *model) { open(w); w.push(); w.pulls[0].HeadSHA = "" }, Theirs, "a", "left"},
		"a branch of somebody else":           {func(w *model) { w.push(); w.want = "a" }, ByHand, "", "refused"},
		"of a fork": {func(w *model) {
			w.want = "a"
			w.pulls = []forge.PullRequest{{Number: 1, State: forge.Closed, HeadRef: "other"}, {Number: 2, Fork: true, State: forge.Closed, HeadRef: "x"}}
		}, Open, "a", "opened"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newModel(t.Fatalf, store, name)
			tt.do(w)
			if e := w.turn(); e.Phase != tt.phase || w.shown != tt.text || strings.Join(w.events, " ") != tt.told {
				t.Errorf("%+v, shown %q, told %q", e, w.shown, w.events)
			}
		})
	}
}

// TestPeopleAskWhileItTurns: there is one pull request, and under the race detector no race.
func TestPeopleAskWhileItTurns(t *testing.T) {
	w := newModel(t.Fatalf, newStore(t), "s")
	w.want = "a"
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := w.m.Turn(t.Context(), w.store, w.now); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			same := func(*thing) bool { return true }
			if _, err := w.m.Ask(t.Context(), w.store, w.now, thing{}, same, func(*thing) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(w.pulls) != 1 || len(w.events) != 1 {
		t.Errorf("%d pull requests, told %q", len(w.pulls), w.events)
	}
}
