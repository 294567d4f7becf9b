package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// The types in the files view*.go are the input of the templates: text that is ready to be shown, with all
// decisions made.

// views converts data of the state to the input of the templates.
type views struct {
	current *current.State
	o       Options
}

// layout is the common part of all pages.
type layout struct {
	Title      string
	Instance   string
	Section    string // in the navigation
	Now        moment
	HasMetrics bool
	HasConfig  bool
	HasPulls   bool
	HasMembers bool
	HasRolls   bool
	// About lists the targets that the page shows and whose changes it receives. An empty list means all.
	About string
	// Refused is the reason why weir rejected the configuration on the disk, or "".
	Refused string
	// Unwritten is the reason why weir writes nothing, or "".
	Unwritten string
	// JSON is the URL of the same data for programs.
	JSON string
	// Viewer is the reader of the page. It is set when the page is rendered.
	Viewer *Viewer
}

func (w *views) layout(section, title string) layout {
	f := w.current.Daemon.Facts()
	_, several := w.memberView()
	return layout{
		Title: title, Instance: f.Instance, Section: section, Now: momentOf(w.current, w.current.Now()), HasMetrics: w.o.Metrics != nil,
		HasConfig: f.Configuration != "", HasPulls: w.current.Pulls.Any(), HasMembers: several, HasRolls: w.o.Rollouts != nil && w.o.Rollouts.Any(), Refused: f.Refused, Unwritten: f.Unwritten, Viewer: &Viewer{},
	}
}

// moment is a time, both exact and relative to now.
type moment struct {
	Exact string // RFC 3339, empty for "never"
	Words string
}

func momentOf(b *current.State, t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return moment{Exact: t.UTC().Format(time.RFC3339), Words: distance(b.Now().Sub(t))}
}

// distance formats a time difference, past or future.
func distance(d time.Duration) string {
	switch {
	case d > -time.Second && d < time.Second:
		return "now"
	case d < 0:
		return "in " + span(-d)
	default:
		return span(d) + " ago"
	}
}

// span returns a duration with a unit that fits its size, such as "3 min" or "1.5 s".
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// attention lists the phases, the ones that need attention first.
var attention = [...]report.Phase{report.Failing, report.Moving, report.Held, report.Suspended, report.Waiting, report.Converged}

func attentionRank(p report.Phase) int { return slices.Index(attention[:], p) }

// filter is a possible value of a filter, with the number of results.
type filter struct {
	Name, Link string
	Phase      report.Phase
	Count      int
	Current    bool
}

// pager contains the links of a list with several pages.
type pager struct {
	Prev, Next string
	Words      string // "101 to 200 of 10,000 pools"
}

// window splits a list into pages. It returns the first and the last index of the existing page that is
// nearest to the wanted page, and the number of that page.
func window(page, size, total int) (from, to, at int) {
	at = min(max(page, 1), max(1, (total+size-1)/size))
	return (at - 1) * size, min(at*size, total), at
}

func pagerOf(from, to, total, at int, noun string, link func(page int) string) pager {
	if total == 0 || from == 0 && to == total {
		return pager{}
	}
	p := pager{Words: fmt.Sprintf("%s to %s of %s", thousands(from+1), thousands(to), plural(total, noun))}
	if at > 1 {
		p.Prev = link(at - 1)
	}
	if to < total {
		p.Next = link(at + 1)
	}
	return p
}

// thousands formats a number with groups of digits.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// commitView is a commit with a link to it, if one is available.
type commitView struct{ Short, Subject, Link string }

func commitOf(l forge.Links, sha, subject string) commitView {
	return commitView{Short: wording.Short(sha), Subject: subject, Link: l.Commit(sha)}
}

// positionView is a position in a file with a link to it, if one is available.
type positionView struct{ Text, Link string }

func positionOf(l forge.Links, sha string, p diag.Position) positionView {
	return positionView{Text: p.String(), Link: l.File(sha, p)}
}

// linksOf returns the links of a target's source.
func linksOf(b *current.State, source string) forge.Links { return b.Sources.Links(source) }

func targetLink(name string) string { return "/targets/" + url.PathEscape(name) }

func poolLink(target, namespace, name string) string {
	return targetLink(target) + "/pools/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}

// keyLink is poolLink for a pool's namespace/name.
func keyLink(target, pool string) string {
	namespace, name, ok := strings.Cut(pool, "/")
	if !ok {
		return targetLink(target)
	}
	return poolLink(target, namespace, name)
}

type faultView struct {
	diag.Diagnostic
	At      positionView
	Related []relatedView
}

type relatedView struct {
	At   positionView
	Text string
}

// faultViews returns diagnostics for a page, the most serious first. sha is the commit of their positions.
func faultViews(list diag.List, l forge.Links, sha string) []faultView {
	var out []faultView
	for _, d := range list {
		f := faultView{Diagnostic: d}
		if d.Known() {
			f.At = positionOf(l, sha, d.Position)
		}
		for _, rel := range d.Related {
			r := relatedView{Text: rel.Message}
			if rel.Known() {
				r.At = positionOf(l, sha, rel.Position)
			}
			f.Related = append(f.Related, r)
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(x, y faultView) int { return int(x.Severity) - int(y.Severity) })
	return out
}
