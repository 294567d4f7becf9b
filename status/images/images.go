// Package images proposes on a forge to pin newer images: one pull request for one family of
// images and repository, of a branch of weir's own.
//
// A Source is turned again and again by the member that speaks for the source. A turn looks at
// the pull requests that are open, asks at most as often as configured which pools could have a
// newer image (package newer), decides purely (Entry.Look, Entry.Next), and does what there is
// to do.
//
// What a crash or a lost answer leaves half done is found on the forge: the branch of a
// proposal is named after its family and images, its commit says what it pins, a pull request
// that was ever opened of it is the only one, and one of other images of the family is taken over
// as long as it is open. A branch moves on to descendants alone, and no further once somebody
// else has pushed to it.
package images

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/newer"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/proposal"
)

// Branches begins the names of the branches.
const Branches = transport.OwnBranches + "images-"

// Trailers of weir's commits: the family, what stands for the pins and the commit that they are
// on top of, and each image.
const (
	TrailerFamily = "Weir-Image-Family"
	TrailerPins   = "Weir-Image-Pins"
	TrailerImage  = "Weir-Image"
)

// Phase is how far a family's proposal is.
type Phase string

// Phases.
const (
	Idle     Phase = ""         // nothing was proposed yet
	Open     Phase = "open"     // the pull request is open
	Theirs   Phase = "theirs"   // it is open, and somebody else has pushed to its branch
	Merged   Phase = "merged"   // it was merged
	Closed   Phase = "closed"   // somebody closed it
	Obsolete Phase = "obsolete" // weir closed it
	ByHand   Phase = "by-hand"  // weir cannot propose it
)

// Entry is what is kept of one family.
type Entry struct {
	Family string `json:"family"`
	Phase  Phase  `json:"phase,omitempty"`
	// Number and URL are those of the open pull request, Title the one that weir gave it.
	Number int64  `json:"number,omitempty"`
	URL    string `json:"url,omitempty"`
	Title  string `json:"title,omitempty"`
	// Branch is at Commit, which weir pushed, on top of On.
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
	On     string `json:"on,omitempty"`
	// Before is the commit that the branch was at before, which a forge may show for a
	// moment yet, Foreign the one of somebody else's that it was seen at.
	Before  string `json:"before,omitempty"`
	Foreign string `json:"foreign,omitempty"`
	// Paths are the files that it changes.
	Paths []string `json:"paths,omitempty"`
	// Print and Images are what it pins, Targets where.
	Print   string   `json:"print,omitempty"`
	Images  []string `json:"images,omitempty"`
	Targets []string `json:"targets,omitempty"`
	// Changed is when weir last opened or changed it, or when it ended.
	Changed time.Time `json:"changed,omitzero"`
	// Declined are images of pull requests that people closed.
	Declined []string `json:"declined,omitempty"`
	// Closing is why weir closes it, noted before it does.
	Closing string `json:"closing,omitempty"`
	// Last is the pull request before, Merge the commit that merging it made.
	Last  int64  `json:"last,omitempty"`
	Merge string `json:"merge,omitempty"`
	// Told is what was told last. After is when something is tried again that failed, Tries
	// times.
	Told  string    `json:"told,omitempty"`
	Tries int       `json:"tries,omitempty"`
	After time.Time `json:"after,omitzero"`
}

type record struct {
	Entries []Entry `json:"entries"`
}

var records = state.Bucket[record]{Name: "images"}

// most is how many families are proposed of a source.
const most = 50

// Now is how the source stands.
type Now struct {
	Time time.Time
	// Head is the commit that is followed, Base the branch that it is on.
	Head, Base string
}

// Source proposes the images of one source. One goroutine turns it.
type Source struct {
	Options
	survey *Survey
	// list are the open pull requests as they were listed last, at listed.
	list   []forge.PullRequest
	listed time.Time
	cursor forge.Cursor
	// asked is when the survey began, next when the next one is due.
	asked, next time.Time
}

// New makes one.
func New(o Options) *Source { return &Source{Options: o} }

func (s *Source) words() proposal.Words { return proposal.Words{Redact: s.Redact} }

// Turn does what is missing, and says when to turn again without news, zero for no such time.
// It reads and writes what is kept in the store, which is that of the source's lease where
// several weirs share the work.
func (s *Source) Turn(ctx context.Context, store state.Store, now Now) (again time.Time, err error) {
	all, err := s.read(store)
	if err != nil {
		return again, err
	}
	keep := func(e *Entry) error {
		i := slices.IndexFunc(all, func(o Entry) bool { return o.Family == e.Family })
		if i >= 0 && reflect.DeepEqual(all[i], *e) {
			return nil
		}
		if i < 0 {
			i, all = len(all), append(all, Entry{})
		}
		all[i] = *e
		return store.Update(func(tx *state.Tx) error { return records.Put(tx, s.Source, record{slices.Clone(all)}) })
	}
	if slices.ContainsFunc(all, func(e Entry) bool { return e.Number != 0 }) || s.survey == nil || len(s.survey.Families) > 0 {
		list, next, same, err := s.Forge.Pulls(ctx, s.cursor)
		if err != nil {
			return again, err
		}
		if s.cursor, s.listed = next, now.Time; !same {
			s.list = list
		}
	}
	for _, e := range slices.Clone(all) {
		if e.Number != 0 && !now.Time.Before(e.After) {
			s.watch(ctx, &e, now)
			if err := keep(&e); err != nil {
				return again, err
			}
		}
	}
	if err := s.ask(ctx, all, now); err != nil {
		return again, err
	}
	again = s.next
	if s.survey == nil || s.survey.Head != now.Head {
		return again, nil
	}
	s.adoptOpen(ctx, all, now, keep)
	defer func() { s.count(all) }()
	for _, f := range s.families(all) {
		if ctx.Err() != nil {
			return again, ctx.Err()
		}
		e := Entry{Family: f.Name}
		if i := slices.IndexFunc(all, func(o Entry) bool { return o.Family == f.Name }); i >= 0 {
			e = all[i]
		}
		at := e.After
		if !now.Time.Before(e.After) {
			at = s.act(ctx, &e, f, now, keep)
			if err := keep(&e); err != nil {
				return again, err
			}
			at = later(at, e.After)
		}
		if at.After(now.Time) && at.Before(again) {
			again = at
		}
	}
	return again, nil
}

// count says how many pools could have a newer image, and how many pull requests are open.
func (s *Source) count(all []Entry) {
	pools, open := 0, 0
	for _, f := range s.survey.Families {
		pools += len(f.Pins)
	}
	for _, e := range all {
		if e.Number != 0 {
			open++
		}
	}
	s.Counted(pools, open)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (s *Source) read(store state.Store) ([]Entry, error) {
	var had record
	err := store.View(func(tx *state.Tx) (err error) {
		had, _, err = records.Get(tx, s.Source)
		return err
	})
	return slices.Clone(had.Entries), err
}

// watch looks at a pull request that was open. One that is in the list of those that are needs no
// request of its own.
func (s *Source) watch(ctx context.Context, e *Entry, now Now) {
	p, err := s.pull(ctx, e.Number)
	seen := Seen{State: p.State, Head: p.HeadSHA, Ours: p.HeadSHA == e.Commit || p.HeadSHA == e.Before}
	if err == nil && p.State == forge.Open && !seen.Ours && p.HeadSHA != e.Foreign {
		// Pushed right before a crash, or by somebody else.
		made, foreign := s.made(ctx, e.Branch, p.HeadSHA, now)
		if seen.Ours = foreign == nil && made.family == e.Family; seen.Ours {
			e.Before, e.Commit = e.Commit, p.HeadSHA
		} else if foreign != nil && !errors.Is(foreign, errForeign) {
			err = foreign
		}
	}
	if err != nil {
		s.fail(ctx, e, now, err)
		return
	}
	e.After, e.Tries = time.Time{}, 0
	if p.State == forge.Merged {
		e.Merge = p.MergeSHA
	}
	was := *e
	*e = e.Look(seen, now.Time)
	switch e.Phase {
	case Merged:
		s.tell(e, "images-closed", "pull request "+proposal.Number(was.Number)+" was merged")
	case Closed:
		s.tell(e, "images-closed", "pull request "+proposal.Number(was.Number)+" was closed: weir proposes these images no more")
	case Theirs:
		s.tell(e, "images-left", "pull request "+proposal.Number(was.Number)+" has commits of somebody else on its branch: weir leaves it alone; merge or close it")
		if was.Phase != Theirs {
			s.comment(ctx, e.Number, "This branch has commits that weir did not make: weir leaves it alone from now on, also when there are newer images or nobody needs it any more. Merge it or close it.")
		}
	case Obsolete:
		s.tell(e, "images-closed", "pull request "+proposal.Number(was.Number)+" was closed: "+was.Closing)
	}
}

// pull is a pull request as it was listed, or else as the forge tells of it.
func (s *Source) pull(ctx context.Context, number int64) (forge.PullRequest, error) {
	if i := slices.IndexFunc(s.list, func(p forge.PullRequest) bool { return p.Number == number }); i >= 0 {
		return s.list[i], nil
	}
	return s.Forge.Pull(ctx, number)
}

// ask asks for newer images, if that is due: as often as configured, and where the followed
// branch has moved on and there is something that depends on it.
func (s *Source) ask(ctx context.Context, all []Entry, now Now) error {
	depends := slices.ContainsFunc(all, func(e Entry) bool { return e.Number != 0 }) || s.survey != nil && len(s.survey.Families) > 0
	due := !now.Time.Before(s.next)
	moved := s.survey != nil && s.survey.Head != now.Head && depends && !now.Time.Before(s.asked.Add(s.Settle))
	if !due && !moved {
		return nil
	}
	got, err := s.Fleet.Survey(ctx)
	if err != nil {
		wait, _ := proposal.Wait(err, 1)
		s.next = now.Time.Add(wait)
		return err
	}
	if s.asked = now.Time; due {
		s.next = now.Time.Add(s.Every)
	}
	if len(got.Families) > most {
		s.Logger.Warn("of so many families of images some are not proposed", "source", s.Source, "families", len(got.Families), "proposed", most)
		got.Families = got.Families[:most]
	}
	s.survey = &got
	for _, g := range got.Gaps[:min(len(got.Gaps), proposal.Evidence)] {
		s.Logger.Info("it is not known whether a pool could have a newer image", "source", s.Source, "target", g.Target, "pool", g.Pool, "why", s.words().Line(g.Why))
	}
	return nil
}

// families are those of the survey, and those of entries.
func (s *Source) families(all []Entry) []newer.Family {
	out := slices.Clone(s.survey.Families)
	for _, e := range all {
		if !slices.ContainsFunc(out, func(f newer.Family) bool { return f.Name == e.Family }) {
			out = append(out, newer.Family{Name: e.Family})
		}
	}
	return out
}

// want is what an entry should come to, and the pins that are left of a family.
func (s *Source) want(ctx context.Context, e *Entry, f newer.Family, now Now) (w Want, pins []newer.Pin, err error) {
	for _, p := range f.Pins {
		if !slices.Contains(e.Declined, p.To) {
			pins = append(pins, p)
		}
	}
	w = Want{Images: newer.Images(pins), Print: newer.Print(pins)}
	for _, t := range e.Targets {
		if why := s.survey.Unread[t]; why != "" {
			w.Unknown = cmp.Or(w.Unknown, t+": "+why)
		}
		if i := slices.IndexFunc(s.survey.Gaps, func(g newer.Gap) bool { return g.Target == t }); i >= 0 {
			w.Unknown = cmp.Or(w.Unknown, t+" "+s.survey.Gaps[i].Pool+": "+s.survey.Gaps[i].Why)
		}
	}
	if e.Number == 0 && e.Merge != "" {
		// The forge tells of a merge before Git does.
		if is, err := s.Git.Descends(ctx, now.Head, e.Merge); err != nil || !is && !now.Time.After(e.Changed.Add(time.Hour)) {
			return Want{}, nil, err
		}
	}
	if e.Number != 0 && e.On != now.Head && len(pins) > 0 {
		theirs, err := s.Git.Changed(ctx, e.On, now.Head)
		if err != nil {
			return w, pins, err
		}
		w.Moved = slices.ContainsFunc(e.Paths, func(p string) bool { _, is := slices.BinarySearch(theirs, p); return is })
	}
	return w, pins, nil
}

// fail notes when to try again: soon, or where weir was told that it may not, seldom and said.
func (s *Source) fail(ctx context.Context, e *Entry, now Now, err error) {
	if ctx.Err() != nil {
		return
	}
	e.Tries++
	wait, mayNot := proposal.Wait(err, e.Tries)
	e.After = now.Time.Add(wait)
	if mayNot {
		s.tell(e, "images-refused", "weir may not propose newer images: "+err.Error())
	}
	s.Logger.Warn("a proposal of newer images waits", "source", s.Source, "family", e.Family, "error", s.Redact(err.Error()), "until", e.After)
}

// tell makes an event of something, once.
func (s *Source) tell(e *Entry, kind, text string) {
	text = s.words().Line(text)
	if e.Told == text {
		return
	}
	e.Told = text
	s.Event(events.Event{Kind: kind, Source: s.Source, Text: "images " + s.words().Line(e.Family) + ": " + text})
}

func (s *Source) comment(ctx context.Context, number int64, text string) {
	if _, err := s.Forge.CreateComment(ctx, number, text); err != nil {
		s.Logger.Warn("cannot comment on a pull request", "source", s.Source, "number", number, "error", s.Redact(err.Error()))
	}
}

var notInBranches = regexp.MustCompile(`[^a-z0-9]+`)

// slug stands for a family in the name of a branch.
func slug(family string) string {
	out := strings.Trim(notInBranches.ReplaceAllString(strings.ToLower(family), "-"), "-")
	return cmp.Or(strings.Trim(out[:min(len(out), 40)], "-"), "other")
}

// branchOf is the branch that proposes images of a family.
func branchOf(family string, images []string) string {
	sum := sha256.Sum256([]byte(family + "\x00" + strings.Join(images, "\x00")))
	return Branches + slug(family) + "-" + hex.EncodeToString(sum[:4])
}

// ofFamily reports whether a branch may be one that proposes images of a family.
func ofFamily(branch, family string) bool {
	rest, is := strings.CutPrefix(branch, Branches+slug(family)+"-")
	return is && len(rest) == 8 && strings.Trim(rest, "0123456789abcdef") == ""
}

var errForeign = errors.New("it has commits that weir did not make")
