package images

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/imageupdates"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/wording"
)

// Pinned is a change of files that pins images.
type Pinned struct {
	Files map[string][]byte
	// Pins lists the pins that the files contain, and Refused all other pins.
	Pins    []imageupdates.Pin
	Refused []Refusal
	Plans   []Planned
}

// Refusal is a pin that a person must write.
type Refusal struct {
	imageupdates.Pin
	Text string
}

// Planned is the effect of the change on a target.
type Planned struct {
	Target string
	// Pools is the number of pools that roll, and Machines the number of their machines.
	Pools, Machines int
	// Fault is the reason why the plan is missing.
	Fault string
	// Schedule describes when the target rolls: its windows, and the targets before it.
	Schedule string
}

// title returns the title of a pull request.
func (k *kind) title(family string, pins []imageupdates.Pin) string {
	return "Pin newer images: " + visible.Clip(k.Words().Line(family), 100) + ", " + wording.Count(len(pins), "pool")
}

// move replaces an image with another one, in some pools.
type move struct {
	from, to           string
	fromImage, toImage *observed.Image
	pools              []string
}

// moves returns the moves of pins, in their order.
func moves(pins []imageupdates.Pin) (out []move) {
	at := map[[2]string]int{}
	for _, p := range pins {
		key := [2]string{p.From, p.To}
		i, known := at[key]
		if !known {
			i = len(out)
			at[key], out = i, append(out, move{from: p.From, to: p.To, fromImage: p.FromImage, toImage: p.ToImage})
		}
		out[i].pools = append(out[i].pools, p.Target+" "+p.Pool)
	}
	return out
}

// body returns the text of a pull request.
func (k *kind) body(e *Entry, pinned Pinned, now proposal.Now) string {
	words := k.Words()
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("There are newer images of %s. Merging this pins them for %s, which then roll.\n", words.Code(e.Family), wording.Count(len(pinned.Pins), "pool"))
	say("| Now | Age | Then | Published | Pools |\n| --- | --- | --- | --- | --- |")
	all := moves(pinned.Pins)
	for i, m := range all {
		if i == proposal.Evidence {
			say("\nand %s more.", wording.Count(len(all)-i, "move"))
			break
		}
		pools := m.pools[0]
		if n := len(m.pools); n > 1 {
			pools = fmt.Sprintf("%s and %d more", m.pools[0], n-1)
		}
		say("| %s | %s | %s | %s | %s |", words.Code(named(m.from, m.fromImage)), age(m.from, m.fromImage, now.Time), words.Code(named(m.to, m.toImage)), day(madeOf(m.to, m.toImage)), words.Code(pools))
	}
	say("\nWhat rolls, as AWS is now:\n")
	for i, p := range pinned.Plans {
		if i == proposal.Evidence {
			say("- and %s more", wording.Count(len(pinned.Plans)-i, "target"))
			break
		}
		text := wording.Count(p.Pools, "pool") + " with " + wording.Count(p.Machines, "machine")
		if p.Fault != "" {
			text = "cannot be planned now: " + words.Code(p.Fault)
		}
		if p.Schedule != "" {
			text += "; " + words.Line(p.Schedule)
		}
		say("- %s: %s", words.Code(p.Target), text)
	}
	if len(pinned.Refused) > 0 {
		say("\nNot in this change:\n")
		for i, r := range pinned.Refused {
			if i == proposal.Evidence {
				say("- and %s more", wording.Count(len(pinned.Refused)-i, "pool"))
				break
			}
			say("- %s: %s", words.Code(r.Target+" "+r.Pool), words.Code(r.Text))
		}
	}
	say("\nweir looks for newer images every %s, updates this text and the branch if it finds some, and closes this pull request once no pool needs it. If you close it, weir does not propose these images again. If you push to its branch, weir leaves it alone.", every(k.Every))
	return b.String() + proposal.Page(k.PageURL)
}

// refusals describes the pins that weir cannot write, with the reasons.
func refusals(list []Refusal) string {
	if len(list) == 0 {
		return "there is nothing to change"
	}
	slices.SortFunc(list, func(a, b Refusal) int { return strings.Compare(a.Target+" "+a.Pool, b.Target+" "+b.Pool) })
	text := list[0].Target + " " + list[0].Pool + ": " + list[0].Text
	if n := len(list); n > 1 {
		text += fmt.Sprintf(" (and %s more)", wording.Count(n-1, "pool"))
	}
	return text
}

func named(id string, im *observed.Image) string {
	if im == nil {
		return id
	}
	return id + " (" + im.Words() + ")"
}

// madeOf returns the creation time of an image or a release; zero if unknown.
func madeOf(id string, im *observed.Image) time.Time {
	text, layout := "", time.RFC3339
	if im != nil {
		text = im.CreatedAt
	} else if i := strings.LastIndex(id, "-"); i >= 0 {
		text, layout = id[i+1:], "20060102"
	}
	t, err := time.Parse(layout, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

func day(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format(time.DateOnly)
}

// age describes the age of an image.
func age(id string, im *observed.Image, now time.Time) string {
	made := madeOf(id, im)
	switch {
	case made.IsZero() && im == nil && strings.HasPrefix(id, "ami-"):
		return "AWS no longer has it"
	case made.IsZero():
		return "unknown"
	}
	return wording.Count(max(0, int(now.Sub(made).Hours()/24)), "day")
}

// every formats an interval.
func every(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return wording.Count(int(d/(24*time.Hour)), "day")
	}
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}
