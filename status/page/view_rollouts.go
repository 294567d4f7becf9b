package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/waves"
)

// Rollouts gives access to the FleetRollouts of all sources.
type Rollouts interface {
	// Any reports whether there is a FleetRollout. Every page calls it.
	Any() bool
	List() (waves.List, error)
}

// rolloutsView is the list of FleetRollouts.
type rolloutsView struct {
	layout
	Error string
	Rows  []rolloutCard
	Turns []turnView
}

// rolloutCard is a FleetRollout in a list.
type rolloutCard struct {
	Name, Source, Link string
	Mark               report.Phase
	Phase              string
	Commit             commitView
	At                 string
	Bar                machineBar
	Waits              string
	Waves              []waveView
}

// rolloutPage contains all data about one FleetRollout.
type rolloutPage struct {
	layout
	rolloutCard
	Headline    string
	Revision    string
	Began       moment
	Ended       moment
	Bake        *bakeView
	BakeAhead   string
	Paused      *wordView
	Stopped     *wordView
	Do          []string
	MaxMachines string
	Moves       int32
	Failed      int
	Budget      int32
	Gates       []gateView
	Bad         []badView
}

type wordView struct {
	By, Why string
	At      moment
}

// bakeView shows the current bake time as a bar.
type bakeView struct {
	Until moment
	Width string // relative to a box of rolloutWidth
	Words string
}

type gateView struct {
	waves.GateAnswer
	Mark  report.Phase
	Asked moment
}

// waveView is a wave, as part of the picture and with its pools.
type waveView struct {
	Name, Anchor string
	State        string
	Mark         report.Phase
	Words        string
	Shares       string
	Size         string // the CSS class of its width
	Bar          machineBar
	Pools        []wavePool
	Rest         []wavePool // all further pools, in a fold
	More         int        // number of pools that are not shown
}

// wavePool is a pool in its wave.
type wavePool struct {
	Name, Target     string
	Link, TargetLink string
	Mark             report.Phase
	State            string
	Bar              machineBar
	Waits            string
}

// machineBar shows machines by version as a bar. Its text has the same content.
type machineBar struct {
	Words string
	Parts []sharePart
	// Ends is a path with the shares at which the rollout waits.
	Ends string
}

const (
	barWidth = 200
	// openPools is the number of visible pools of a wave, and foldedPools the number in a fold.
	openPools   = 6
	foldedPools = 200
	shownBad    = 20
)

var partMarks = map[string]string{waves.PartNew: "converged", waves.PartStarting: "moving", waves.PartFailed: "failing", waves.PartOld: "old"}

// barOf draws machines by version. shares are the percentages at which the rollout waits, to mark on the
// bar.
func barOf(m waves.Machines, shares []int32) machineBar {
	var b machineBar
	at := int32(0)
	var words []string
	for _, part := range m.Parts() {
		from, to := float64(at)/float64(m.All)*barWidth, float64(at+part.Count)/float64(m.All)*barWidth
		b.Parts = append(b.Parts, sharePart{partMarks[part.What], coordinate(from), coordinate(to - from)})
		words = append(words, thousands(int(part.Count))+" "+part.What)
		at += part.Count
	}
	b.Words = strings.Join(words, ", ")
	if m.All == 0 {
		b.Words = "no machine"
	}
	var path strings.Builder
	for _, s := range shares {
		if s > 0 && s < 100 {
			fmt.Fprintf(&path, "M%s 0v12", coordinate(float64(s)/100*barWidth))
		}
	}
	b.Ends = path.String()
	return b
}

// phaseMarks maps phases of FleetRollouts to the marks that draw them.
var phaseMarks = map[string]report.Phase{
	waves.Idle: report.Waiting, waves.Gathering: report.Moving, waves.Running: report.Moving, waves.Baking: report.Moving,
	waves.Paused: report.Held, waves.Stopped: report.Failing, waves.Done: report.Converged, waves.Incomplete: report.Held,
}

var waveMarks = map[string]report.Phase{
	waves.WaveDone: report.Converged, waves.WaveNow: report.Moving, waves.WaveAhead: report.Waiting, waves.WaveStopped: report.Failing,
}

var verdictMarks = map[string]report.Phase{"pass": report.Converged, "fail": report.Failing, "unknown": report.Held}

// rolloutLink returns the URL of a FleetRollout's page.
func rolloutLink(source, name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "/rollouts/" + url.PathEscape(source) + "/" + strings.Join(parts, "/")
}

// rollouts returns all FleetRollouts, or an error that the list shows.
func (w *views) rollouts() ([]waves.Rollout, error) {
	list, err := w.waits()
	return list.Rollouts, err
}

// waits returns all FleetRollouts, and the targets that wait because of the configuration.
func (w *views) waits() (list waves.List, err error) {
	if w.o.Rollouts == nil || !w.o.Rollouts.Any() {
		return list, nil
	}
	if list, err = w.o.Rollouts.List(); err != nil {
		w.o.Logger.Error("rollouts cannot be read", "error", err)
	}
	return list, err
}

// busyRollout reports whether a rollout needs attention: it is neither idle nor done.
func busyRollout(r waves.Rollout) bool { return r.Phase != waves.Idle && r.Phase != waves.Done }

// rolloutsView prepares the page of all rollouts, the ones that need attention first.
func (w *views) rolloutsView() rolloutsView {
	v := rolloutsView{layout: w.layout("rollouts", "Rollouts")}
	v.JSON = "/api/v1/rollouts"
	list, err := w.waits()
	if err != nil {
		v.Error = "weir cannot read the records of rollouts. See weir's log."
	}
	slices.SortStableFunc(list.Rollouts, func(a, b waves.Rollout) int {
		return attentionRank(phaseMarks[a.Phase]) - attentionRank(phaseMarks[b.Phase])
	})
	for _, r := range list.Rollouts {
		v.Rows = append(v.Rows, w.rolloutCard(r))
	}
	for _, t := range list.Turns {
		v.Turns = append(v.Turns, turnView{linked{t.Target, targetLink(t.Target)}, t.Waits})
	}
	return v
}

// busyRollouts returns the cards of the start page.
func (w *views) busyRollouts() (out []rolloutCard) {
	list, _ := w.rollouts()
	for _, r := range list {
		if busyRollout(r) {
			out = append(out, w.rolloutCard(r))
		}
	}
	return out
}

func (w *views) rolloutCard(r waves.Rollout) rolloutCard {
	c := rolloutCard{
		Name: r.Name, Source: r.Source, Link: rolloutLink(r.Source, r.Name), Mark: phaseMarks[r.Phase], Phase: r.Phase, At: r.At(),
		Commit: commitOf(linksOf(w.current, r.Source), r.Revision, ""), Bar: barOf(r.Machines, nil), Waits: r.Waits,
	}
	for n, one := range r.Waves {
		c.Waves = append(c.Waves, waveViewOf(r, n, one))
	}
	return c
}

// waveViewOf prepares the wave at index n of a rollout. Only the current or stopped wave marks its shares
// on the bar.
func waveViewOf(r waves.Rollout, n int, one waves.Wave) waveView {
	v := waveView{
		Name: one.Name, Anchor: fmt.Sprintf("wave-%d", n+1), State: one.State, Mark: waveMarks[one.State],
		Words: plural(one.Pools, "pool") + ", " + plural(int(one.Machines.All), "machine"), Size: sizeOf(one.Machines.All, r.Machines.All),
	}
	if r.Phase == waves.Paused && one.State == waves.WaveNow {
		v.Mark = report.Held
	}
	ends := one.Shares
	if one.State != waves.WaveNow && one.State != waves.WaveStopped {
		ends = nil
	}
	v.Bar = barOf(one.Machines, ends)
	if len(one.Shares) > 1 {
		var texts []string
		for _, s := range one.Shares {
			texts = append(texts, fmt.Sprint(s))
		}
		v.Shares = "in shares of " + strings.Join(texts, ", ") + " %"
	}
	if one.State == waves.WaveNow && r.Share > 0 && r.Share < 100 {
		v.Shares += fmt.Sprintf(", now %d %%", r.Share)
	}
	return v
}

// sizeOf returns the CSS class of a wave's width. A wave with more machines is wider, but every wave is
// wide enough to be read.
func sizeOf(n, all int32) string {
	if all <= 0 {
		return "s1"
	}
	return fmt.Sprintf("s%d", max(1, min(6, 1+int(n)*5/int(all))))
}

// rolloutPage prepares the page of a rollout.
func (w *views) rolloutPage(r waves.Rollout) rolloutPage {
	v := rolloutPage{
		layout: w.layout("rollouts", r.Name), rolloutCard: w.rolloutCard(r), Revision: r.Revision, Began: momentOf(w.current, r.Began), Ended: momentOf(w.current, r.Ended),
		Paused: wordOf(w.current, r.Paused), Stopped: wordOf(w.current, r.Stopped), Do: r.Do, Moves: r.Moves, Failed: r.Failed, Budget: r.FailureBudget,
	}
	v.JSON = "/api/v1/rollouts"
	v.Headline = headlineOf(r)
	if r.MaxMachines > 0 {
		v.MaxMachines = thousands(int(r.MaxMachines))
	}
	if !r.BakesUntil.IsZero() {
		whole, done := r.BakesUntil.Sub(r.BakesFrom), w.current.Now().Sub(r.BakesFrom)
		part := 1.0
		if whole > 0 {
			part = min(1, max(0, float64(done)/float64(whole)))
		}
		v.Bake = &bakeView{Until: momentOf(w.current, r.BakesUntil), Width: coordinate(part * rolloutWidth), Words: span(max(0, done)) + " of " + span(whole)}
	}
	if r.BakeAhead > 0 {
		v.BakeAhead = span(time.Duration(r.BakeAhead) * time.Second)
	}
	for i := range v.Waves {
		v.Waves[i].fill(r, i)
	}
	for _, g := range r.Gates {
		mark := verdictMarks[g.Verdict]
		v.Gates = append(v.Gates, gateView{g, mark, momentOf(w.current, g.At)})
	}
	v.Bad = badViews(w.current, r.Bad)
	return v
}

func wordOf(b *current.State, word *waves.Word) *wordView {
	if word == nil {
		return nil
	}
	return &wordView{word.By, word.Why, momentOf(b, word.At)}
}

// fill adds pools to a wave: the ones that need attention first, and all further pools in a fold.
func (v *waveView) fill(r waves.Rollout, n int) {
	var all []wavePool
	for _, p := range r.Pools {
		if p.In(n) {
			all = append(all, wavePoolOf(r, v.State, p))
		}
	}
	slices.SortStableFunc(all, func(a, b wavePool) int { return attentionRank(a.Mark) - attentionRank(b.Mark) })
	open := openPools
	if v.State == waves.WaveAhead || v.State == waves.WaveDone {
		open = 0
	}
	if len(all) <= open+2 {
		open = len(all) // a fold takes as much room
	}
	v.Pools, v.Rest = all[:open], all[open:min(len(all), open+foldedPools)]
	v.More = len(all) - len(v.Pools) - len(v.Rest)
}

// wavePoolOf prepares a pool of a wave. wave is the state of the wave.
func wavePoolOf(r waves.Rollout, wave string, p waves.Pool) wavePool {
	namespace, name, _ := strings.Cut(p.Pool, "/")
	v := wavePool{
		Name: name, Target: p.Target, Link: poolLink(p.Target, namespace, name), TargetLink: targetLink(p.Target), Bar: barOf(p.Counts(), nil),
	}
	switch {
	case p.Failed != "":
		v.State, v.Mark, v.Waits = "failed", report.Failing, p.Failed
	case p.Unseen:
		v.State, v.Mark, v.Waits = "not reported", report.Held, "the member that owns this target has not reported on it"
	case p.Broken > 0:
		v.State, v.Mark = "stopped", report.Failing
	case p.Rolls, p.Moves > 0 && r.Paused == nil && r.Stopped == nil:
		v.State, v.Mark = "rolls", report.Moving
	case p.Old == 0 && p.Starting == 0:
		v.State, v.Mark = "new", report.Converged
	case p.Old == 0:
		v.State, v.Mark = "starting", report.Moving
	case wave == waves.WaveStopped || r.Phase == waves.Stopped:
		v.State, v.Mark = "stays", report.Waiting
	case p.Share > 0:
		v.State, v.Mark = fmt.Sprintf("%d %% done", p.Share), report.Waiting
	default:
		v.State, v.Mark = "waits", report.Waiting
	}
	// The page already shows the wait that all pools share.
	if wave == waves.WaveNow && v.Waits == "" && p.Waits != r.Name+": "+r.Waits && p.Waits != r.Name+" "+r.Waits {
		v.Waits = p.Waits
	}
	return v
}

func (w *web) rolloutList(rw http.ResponseWriter, r *http.Request) {
	w.render(rw, r, http.StatusOK, "rollouts", w.rolloutsView())
}

// rollout serves the page of one FleetRollout.
func (w *web) rollout(rw http.ResponseWriter, r *http.Request) {
	source, name := r.PathValue("source"), r.PathValue("name")
	list, err := w.rollouts()
	for _, one := range list {
		if one.Source == source && one.Name == name {
			w.render(rw, r, http.StatusOK, "rollout", w.rolloutPage(one))
			return
		}
	}
	hint := "It may have been removed from Git."
	if err != nil {
		hint = "weir cannot read the records of rollouts. See weir's log."
	}
	w.missing(rw, r, "FleetRollout "+name+" not found in "+source+".", hint, linked{"All rollouts", "/rollouts"})
}
