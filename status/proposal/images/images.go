// Package images proposes to pin newer images: one pull request for each family of images and
// repository.
//
// The branch is named after the family and its images. So weir finds the pull request again after a
// crash or a lost record, and a pull request that a user closed stays closed for these images.
package images

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/imageupdates"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

// Branches is the prefix of the branches' names.
const Branches = transport.OwnBranches + "images-"

// The trailers of weir's commits: the family, the fingerprint of the pins with the parent commit, and each
// image.
const (
	TrailerFamily = "Weir-Image-Family"
	TrailerPins   = "Weir-Image-Pins"
	TrailerImage  = "Weir-Image"
)

// Entry is the record of one family.
type Entry struct {
	proposal.State
	Family string `json:"family"`
	// Images lists the images that the pull request pins. Targets lists the affected targets.
	Images  []string `json:"images,omitempty"`
	Targets []string `json:"targets,omitempty"`
	// Declined lists images in pull requests that users closed.
	Declined []string `json:"declined,omitempty"`
	// Told is the last text, stored by earlier versions under this name.
	Told string `json:"told,omitempty"`
}

const (
	// most is the maximum number of families that are proposed for a source.
	most = 50
	// mostDeclined is the maximum number of stored declined images.
	mostDeclined = 50
)

// Git is the mirror of the source.
type Git interface {
	proposal.Git
	Descends(ctx context.Context, revision, from string) (bool, error)
}

// Fleet finds the current and possible images of pools, and writes pins into files.
type Fleet interface {
	// Survey reads the images of all pools of the source at the followed commit from AWS.
	Survey(ctx context.Context) (Survey, error)
	// Pin writes pins into the files of a commit, and plans the result.
	Pin(ctx context.Context, on string, pins []imageupdates.Pin) (Pinned, error)
}

// Survey contains the pools that could have newer images.
type Survey struct {
	// Head is the commit at which the pools were planned.
	Head     string
	Families []imageupdates.Family
	// Gaps lists pools whose newest image is unknown. Unread lists targets whose images are unknown, each
	// with the reason.
	Gaps   []imageupdates.Gap
	Unread map[string]string
}

// Options configures a Source.
type Options struct {
	proposal.Options
	// Settle is the minimum time between two surveys that new commits cause.
	Settle time.Duration
	Git    Git
	Fleet  Fleet
	// Counted receives the number of pools that could have a newer image, and the number of open pull
	// requests.
	Counted func(pools, open int)
}

// kind implements proposal.Kind for one source.
type kind struct {
	Options
	survey *Survey
	// asked is the start of the survey, and next the time of the next one.
	asked, next time.Time
}

// Source opens the pull requests of one source.
type Source = proposal.Machine[Entry, *Entry]

// New returns a Source.
func New(o Options) *Source {
	o.Record, o.Options.Git = "images", o.Git
	return proposal.New(o.Options, proposal.Kind[Entry](&kind{Options: o}))
}

// Entries finds newer images in AWS if that is due: at every Options.Every, and if the followed branch has
// changed and an entry depends on it.
func (k *kind) Entries(ctx context.Context, all []Entry, now proposal.Now) ([]Entry, time.Time, error) {
	for i := range all {
		all[i].Text = cmp.Or(all[i].Text, all[i].Told)
	}
	depends := slices.ContainsFunc(all, func(e Entry) bool { return e.IsOpen() }) || k.survey != nil && len(k.survey.Families) > 0
	due := !now.Time.Before(k.next)
	moved := k.survey != nil && k.survey.Head != now.Head && depends && !now.Time.Before(k.asked.Add(k.Settle))
	if due || moved {
		got, err := k.Fleet.Survey(ctx)
		if err != nil {
			wait, _ := proposal.Wait(err, 1)
			k.next = now.Time.Add(wait)
			return all, k.next, err
		}
		if k.asked = now.Time; due {
			k.next = now.Time.Add(k.Every)
		}
		k.update(got)
	}
	if k.survey == nil { // AWS was requested a moment ago, and did not answer
		return all, k.next, nil
	}
	for _, f := range k.survey.Families {
		if !slices.ContainsFunc(all, func(e Entry) bool { return e.Family == f.Name }) {
			all = append(all, Entry{Family: f.Name})
		}
	}
	return all, k.next, nil
}

func (k *kind) update(got Survey) {
	if len(got.Families) > most {
		k.Logger.Warn("of so many families of images some are not proposed", "source", k.Source, "families", len(got.Families), "proposed", most)
		got.Families = got.Families[:most]
	}
	k.survey = &got
	for _, g := range got.Gaps[:min(len(got.Gaps), proposal.Evidence)] {
		k.Logger.Info("cannot find out whether a pool could have a newer image", "source", k.Source, "target", g.Target, "pool", g.Pool, "why", k.Words().Line(g.Why))
	}
}

// Want proposes the newest images that no user declined.
func (k *kind) Want(ctx context.Context, e *Entry, now proposal.Now) (w proposal.Want, err error) {
	if k.survey == nil || k.survey.Head != now.Head || e.IsOpen() && k.unknown(e) {
		return w, nil
	}
	var pins []imageupdates.Pin
	if i := slices.IndexFunc(k.survey.Families, func(f imageupdates.Family) bool { return f.Name == e.Family }); i >= 0 {
		pins = slices.DeleteFunc(slices.Clone(k.survey.Families[i].Pins), func(p imageupdates.Pin) bool { return slices.Contains(e.Declined, p.To) })
	}
	switch {
	case len(pins) == 0 && (e.IsOpen() || e.Branch != ""): // a pull request may be open although the response was lost
		w.Branches = []string{e.Branch}
		w.Gone = "no pool needs it any more at " + wording.Short(now.Head) + ": each has these images or newer ones, looks for other images, or AWS no longer has these"
		return w, nil
	case len(pins) == 0:
		return w, nil
	case !e.IsOpen() && e.Merge != "": // the forge reports a merge before Git does
		if is, err := k.Git.Descends(ctx, now.Head, e.Merge); err != nil || !is && !now.Time.After(e.Changed.Add(time.Hour)) {
			return w, err
		}
	}
	images := imageupdates.Images(pins)
	if !e.IsOpen() {
		e.Images = images
	}
	w.Print, w.Branches = imageupdates.Print(pins), []string{branchOf(e.Family, images)}
	w.Draft = func(ctx context.Context) (proposal.Draft, error) { return k.draft(ctx, e, pins, w, now) }
	return w, nil
}

// unknown reports whether the required images of any target of an open pull request are unknown.
func (k *kind) unknown(e *Entry) bool {
	return slices.ContainsFunc(e.Targets, func(t string) bool {
		return k.survey.Unread[t] != "" || slices.ContainsFunc(k.survey.Gaps, func(g imageupdates.Gap) bool { return g.Target == t })
	})
}

// draft returns the pull request that pins newer images of a family. It refuses if no pin could be written
// to a file.
func (k *kind) draft(ctx context.Context, e *Entry, pins []imageupdates.Pin, w proposal.Want, now proposal.Now) (d proposal.Draft, err error) {
	pinned, err := k.Fleet.Pin(ctx, now.Head, pins)
	if err != nil {
		return d, err
	}
	if len(pinned.Files) == 0 {
		return d, proposal.Refuse("%s", refusals(pinned.Refused))
	}
	images, says := imageupdates.Images(pinned.Pins), "pins newer images of "+wording.Count(len(pinned.Pins), "pool")
	d = proposal.Draft{
		Branch: w.Branches[0], Title: k.title(e.Family, pinned.Pins), Body: k.body(e, pinned, now), Paths: slices.Sorted(maps.Keys(pinned.Files)),
		Opened: says, Updated: says + " now", Comment: "weir updated this pull request: " + k.Words().Line(strings.Join(images, ", ")) + ". The text above is up to date.",
		Pushed: func() { e.Images, e.Targets = images, targetsOf(pinned.Pins) },
	}
	d.Commit = source.Commit{
		On: now.Head, Files: pinned.Files, At: now.Time,
		Message: d.Title + "\n\nThe pools roll to these images once this is merged.\n\n" + trailers(e.Family, w.Print, now.Head, images),
	}
	return d, nil
}

// Made reads the trailers of a commit, and takes the images from them. ours is false if the commit is not
// one of weir's for the entry's family.
func (k *kind) Made(e *Entry, of []snapshot.Trailer) (m proposal.Made, ours bool) {
	var family string
	var images []string
	for _, t := range of {
		switch {
		case strings.EqualFold(t.Key, TrailerFamily):
			family = t.Value
		case strings.EqualFold(t.Key, TrailerPins):
			m.Print, m.On, _ = strings.Cut(t.Value, " ")
		case strings.EqualFold(t.Key, TrailerImage):
			images = append(images, t.Value)
		}
	}
	if family != e.Family || m.Print == "" {
		return m, false
	}
	e.Images = images
	if len(e.Targets) == 0 && k.survey != nil { // the affected targets are no longer known
		e.Targets = slices.Sorted(maps.Keys(k.survey.Unread))
	}
	return m, true
}

// Ended prepares the entry for the next pull request of the family, and records images that users declined.
func (k *kind) Ended(e *Entry) bool {
	if e.Phase == proposal.ByHand {
		return true
	}
	if e.Phase == proposal.Closed || e.Phase == proposal.Merged && e.Print == "" {
		for _, im := range e.Images {
			if !slices.Contains(e.Declined, im) {
				e.Declined = append(slices.Clone(e.Declined), im)
			}
		}
		e.Declined = e.Declined[max(0, len(e.Declined)-mostDeclined):]
	}
	was := e.State
	*e = Entry{Family: e.Family, Declined: e.Declined, Told: e.Told}
	e.Phase, e.Changed, e.Last, e.Merge, e.Text, e.URL = was.Phase, was.Changed, was.Number, was.Merge, was.Text, was.URL
	return true
}

// Texts implements proposal.Kind.
func (k *kind) Texts(*Entry) proposal.Texts {
	return proposal.Texts{
		Merged: "was merged", Closed: "was closed: weir no longer proposes these images",
		Left:        "has commits by somebody else on its branch: weir does not change it; merge or close it",
		LeftComment: "This branch has commits by somebody else. weir no longer updates it, even if it finds newer images or no pool needs it. Merge it or close it.",
		Refused:     "weir must not propose newer images", ByHand: "weir proposes nothing",
	}
}

// Event implements proposal.Kind.
func (k *kind) Event(e *Entry, what proposal.What, text string) events.Event {
	e.Told = text
	return events.Event{Kind: "images-" + string(what), Source: k.Source, Text: "images " + k.Words().Line(e.Family) + ": " + text}
}

// Finish counts pools and pull requests.
func (k *kind) Finish(_ context.Context, all []Entry) {
	if k.survey == nil {
		return
	}
	pools, open := 0, 0
	for _, f := range k.survey.Families {
		pools += len(f.Pins)
	}
	for i := range all {
		if all[i].IsOpen() {
			open++
		}
	}
	k.Counted(pools, open)
}

// Owns reports whether a branch may propose images of a family.
func (k *kind) Owns(e *Entry, branch string) bool {
	rest, is := strings.CutPrefix(branch, Branches+slug(e.Family)+"-")
	return is && len(rest) == 8 && strings.Trim(rest, "0123456789abcdef") == ""
}

func trailers(family, print, on string, images []string) string {
	var b strings.Builder
	for _, im := range images[:min(len(images), 200)] {
		fmt.Fprintf(&b, "%s: %s\n", TrailerImage, im)
	}
	fmt.Fprintf(&b, "%s: %s\n%s: %s %s\n", TrailerFamily, visible.Line(family), TrailerPins, print, on)
	return b.String()
}

func targetsOf(pins []imageupdates.Pin) (out []string) {
	for _, p := range pins {
		out = append(out, p.Target)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var notInBranches = lazyregexp.New(`[^a-z0-9]+`)

// slug identifies a family in the name of a branch.
func slug(family string) string {
	out := strings.Trim(notInBranches.ReplaceAllString(strings.ToLower(family), "-"), "-")
	return cmp.Or(strings.Trim(out[:min(len(out), 40)], "-"), "other")
}

// branchOf returns the branch that proposes images of a family.
func branchOf(family string, images []string) string {
	sum := sha256.Sum256([]byte(family + "\x00" + strings.Join(images, "\x00")))
	return Branches + slug(family) + "-" + hex.EncodeToString(sum[:4])
}
