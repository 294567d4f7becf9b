package images

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/status/forge"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const daily = 24 * time.Hour

func wants(images ...string) Want { return Want{Images: images, Print: "print of " + images[0]} }

func TestWhatIsDoneNext(t *testing.T) {
	open := Entry{Family: "f", Phase: Open, Number: 7, Commit: "c", Images: []string{"ami-1"}, Print: "print of ami-1", Changed: noon.Add(-2 * daily)}
	fresh := open
	fresh.Changed = noon.Add(-time.Hour)
	theirs := open
	theirs.Phase = Theirs
	moved := wants("ami-1")
	moved.Moved = true
	unknown := Want{Unknown: "prod: denied"}
	for name, tt := range map[string]struct {
		e    Entry
		w    Want
		want Act
		at   time.Time
	}{
		"nothing newer":                       {Entry{}, Want{}, Nothing, time.Time{}},
		"something newer":                     {Entry{}, wants("ami-1"), Propose, time.Time{}},
		"soon after the last one":             {Entry{Phase: Merged, Changed: noon.Add(-time.Hour)}, wants("ami-1"), Later, noon.Add(23 * time.Hour)},
		"long after the last one":             {Entry{Phase: Closed, Changed: noon.Add(-daily)}, wants("ami-2"), Propose, time.Time{}},
		"open, as it is":                      {open, wants("ami-1"), Nothing, time.Time{}},
		"open, a newer image":                 {open, wants("ami-2"), Update, time.Time{}},
		"open, a newer image too soon":        {fresh, wants("ami-2"), Later, noon.Add(23 * time.Hour)},
		"open, its files were changed":        {open, moved, Update, time.Time{}},
		"open, not needed":                    {open, Want{}, Close, time.Time{}},
		"open, not needed, soon":              {fresh, Want{}, Close, time.Time{}},
		"open, and a target is not known":     {open, unknown, Nothing, time.Time{}},
		"somebody else's, a newer image":      {theirs, wants("ami-2"), Nothing, time.Time{}},
		"somebody else's, not needed":         {theirs, Want{}, Nothing, time.Time{}},
		"by hand last time, and now as often": {Entry{Phase: ByHand, Changed: noon.Add(-daily)}, wants("ami-1"), Propose, time.Time{}},
	} {
		if act, at := tt.e.Next(tt.w, noon, daily); act != tt.want || !at.Equal(tt.at) {
			t.Errorf("%s: %q at %s, want %q at %s", name, act, at, tt.want, tt.at)
		}
	}
}

func TestWhatBecameOfAPullRequest(t *testing.T) {
	open := Entry{Family: "f", Phase: Open, Number: 7, Commit: "c", Images: []string{"ami-1"}, Declined: []string{"ami-0"}}
	closing := open
	closing.Closing = "nobody needs it"
	for name, tt := range map[string]struct {
		e        Entry
		seen     Seen
		phase    Phase
		number   int64
		declined []string
	}{
		"open":                {open, Seen{State: forge.Open, Ours: true}, Open, 7, []string{"ami-0"}},
		"pushed to":           {open, Seen{State: forge.Open}, Theirs, 7, []string{"ami-0"}},
		"merged":              {open, Seen{State: forge.Merged}, Merged, 0, []string{"ami-0"}},
		"merged by others":    {open, Seen{State: forge.Merged, Ours: true}, Merged, 0, []string{"ami-0"}},
		"closed by somebody":  {open, Seen{State: forge.Closed, Ours: true}, Closed, 0, []string{"ami-0", "ami-1"}},
		"closed by weir":      {closing, Seen{State: forge.Closed, Ours: true}, Obsolete, 0, []string{"ami-0"}},
		"merged while closed": {closing, Seen{State: forge.Merged, Ours: true}, Merged, 0, []string{"ami-0"}},
	} {
		e := tt.e.Look(tt.seen, noon)
		if e.Phase != tt.phase || e.Number != tt.number || !slices.Equal(e.Declined, tt.declined) {
			t.Errorf("%s: %+v", name, e)
		}
		if e.Number == 0 && (e.Last != 7 || !e.Changed.Equal(noon) || e.Closing != "") {
			t.Errorf("%s: the next one does not begin anew: %+v", name, e)
		}
	}
}

// TestNobodyIsOverwhelmed: whatever images come and whatever people do, there is one pull
// request at most, none is changed or opened more often than configured, what was closed by
// somebody is not proposed again, and what somebody else pushed to is not touched.
func TestNobodyIsOverwhelmed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, now := Entry{Family: "f"}, noon
		var writes []time.Time // of branches
		declined := map[string]bool{}
		var number int64
		foreign := false
		newest := 0
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "hours")) * time.Hour)
			newest = max(newest, rapid.IntRange(0, 6).Draw(t, "newest"))
			image := string(rune('a' + newest))
			if e.Number != 0 {
				seen := Seen{State: forge.Open, Head: "theirs", Ours: !foreign}
				switch rapid.IntRange(0, 8).Draw(t, "people") {
				case 0:
					seen.State = forge.Merged
				case 1:
					seen.State = forge.Closed
					for _, im := range e.Images {
						declined[im] = true
					}
				case 2:
					foreign = true
					seen.Ours = false
				}
				e = e.Look(seen, now)
			}
			if e.Number == 0 {
				foreign = false
			}
			w := wants(image)
			if declined[image] && !slices.Contains(e.Declined, image) {
				t.Fatalf("%s was turned down and is forgotten: %+v", image, e)
			}
			if slices.Contains(e.Declined, image) || rapid.IntRange(0, 5).Draw(t, "none") == 0 {
				w = Want{}
			}
			if rapid.IntRange(0, 5).Draw(t, "unknown") == 0 {
				w.Unknown = "denied"
			}
			act, at := e.Next(w, now, daily)
			if act == Later && !at.After(now) {
				t.Fatalf("later, at %s, which was", at)
			}
			if foreign && act != Nothing || e.Number != 0 && w.Unknown != "" && act != Nothing {
				t.Fatalf("%s of somebody else's, or without knowing: %+v", act, e)
			}
			switch act {
			case Propose, Update:
				if act == Propose && e.Number != 0 || act == Update && e.Number == 0 || declined[image] {
					t.Fatalf("%s %s: %+v", act, image, e)
				}
				if act == Propose {
					number++
					e.Number, e.Phase = number, Open
				}
				writes = append(writes, now)
				e.Images, e.Print, e.Changed = w.Images, w.Print, now
			case Close:
				e.Closing = "why"
				e = e.Look(Seen{State: forge.Closed, Ours: true}, now)
			}
		}
		for i := 1; i < len(writes); i++ {
			if writes[i].Sub(writes[i-1]) < daily {
				t.Fatalf("written at %s and at %s", writes[i-1], writes[i])
			}
		}
	})
}
