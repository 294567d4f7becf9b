package images

import (
	"slices"
	"time"

	"github.com/weir-gitops/weir/status/forge"
)

// Want is what Git should pin of a family, as far as it is known.
type Want struct {
	// Images are those that pins are to, in order; none where no pool could have a newer one.
	Images []string
	// Print stands for what is to be written.
	Print string
	// Unknown says what keeps weir from knowing about all pools that the pull request is
	// about: it is neither changed nor closed then.
	Unknown string
	// Moved says that the followed branch has changed files that the pull request changes.
	Moved bool
}

// Seen is how the forge shows an entry's pull request.
type Seen struct {
	State forge.State
	// Head is the commit that its branch is at, Ours says that weir made that.
	Head string
	Ours bool
}

// Act is what is to be done for an entry.
type Act string

// What there is to do.
const (
	Nothing Act = ""
	Propose Act = "propose" // push the branch and open a pull request
	Update  Act = "update"  // move the branch on and say so
	Close   Act = "close"   // nobody needs the pull request any more
	Later   Act = "later"   // at Entry.Next
)

// mostDeclined is how many images are remembered that people turned down.
const mostDeclined = 50

// Look takes in what became of an entry's pull request.
func (e Entry) Look(seen Seen, now time.Time) Entry {
	switch {
	case seen.State == forge.Merged:
		e = e.ended(Merged, now)
	case seen.State == forge.Closed && e.Closing != "":
		e = e.ended(Obsolete, now)
	case seen.State == forge.Closed:
		e = e.decline(e.Images).ended(Closed, now)
	case !seen.Ours:
		e.Phase, e.Foreign, e.Closing = Theirs, seen.Head, ""
	default: // also one that weir could not close: it may be needed again
		e.Phase, e.Foreign, e.Closing = Open, "", ""
	}
	return e
}

// ended is the entry without a pull request.
func (e Entry) ended(phase Phase, now time.Time) Entry {
	return Entry{Family: e.Family, Phase: phase, Declined: e.Declined, Changed: now, Last: e.Number, Merge: e.Merge, Told: e.Told, URL: e.URL}
}

// decline notes that people do not want images.
func (e Entry) decline(images []string) Entry {
	e.Declined = slices.Clone(e.Declined)
	for _, im := range images {
		if !slices.Contains(e.Declined, im) {
			e.Declined = append(e.Declined, im)
		}
	}
	e.Declined = e.Declined[max(0, len(e.Declined)-mostDeclined):]
	return e
}

// Next says what to do for an entry, at most as often as every; at is when, where that is
// later.
//
// A pull request whose branch has commits of somebody else is in that person's hands.
func (e Entry) Next(w Want, now time.Time, every time.Duration) (act Act, at time.Time) {
	due := e.Changed.Add(every)
	if e.Changed.IsZero() {
		due = now
	}
	switch {
	case e.Number != 0 && (e.Phase == Theirs || w.Unknown != ""):
		return Nothing, at
	case e.Number != 0 && len(w.Images) == 0:
		return Close, at
	case e.Number != 0 && w.Print == e.Print && !w.Moved:
		return Nothing, at
	case len(w.Images) == 0:
		return Nothing, at
	case now.Before(due):
		return Later, due
	case e.Number != 0:
		return Update, at
	}
	return Propose, at
}
