package gates

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/gates/calendar"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/render/diag"
)

// Conditions are the conditions in the configuration for changes to a target.
type Conditions struct {
	// DependsOn names all targets that must have converged before, direct and indirect, in order. Targets
	// with the same dependencies share the slice.
	DependsOn []string
	Windows   []calendar.Window
	// Rendered identifies the desired state of the target, by commit and configuration. Equal desired states
	// have the same value in every process. It is empty if the desired state is unknown.
	Rendered string
	// Seq is Desired.Seq of the target.
	Seq int64
	// Wanted is Rendered together with the target's configuration.
	Wanted string
}

// Before contains the results of earlier passes.
type Before struct {
	// Reports has the last report of each target, Standings the state of each target after it.
	Reports   map[string]*plan.Report
	Standings map[string]plan.Standing
}

// Note stores a report.
func (b *Before) Note(r *plan.Report) {
	if b.Reports == nil {
		b.Reports, b.Standings = map[string]*plan.Report{}, map[string]plan.Standing{}
	}
	b.Reports[r.Target] = r
	b.Standings[r.Target] = b.Standings[r.Target].After(r)
}

// Keep forgets the targets that no longer exist, so that no approval can apply to them.
func (b *Before) Keep(conditions map[string]Conditions) {
	maps.DeleteFunc(b.Reports, func(name string, _ *plan.Report) bool { _, is := conditions[name]; return !is })
	maps.DeleteFunc(b.Standings, func(name string, _ plan.Standing) bool { _, is := conditions[name]; return !is })
}

// Pending contains the grants of approvals that are not used yet.
type Pending struct {
	// Ready has the grants by target.
	Ready map[string]Grant
	// Begin stores a grant before its first step. It is called from several goroutines.
	Begin func(Grant) error
}

// Gate sets for every target of a pass which gates hold its steps. A pending grant lets only the plan with
// its digest run, after the grant is stored. The stored grant then lets the following steps run, as long as
// the desired state stays the same.
func Gate(batches []reconciler.Batch, conditions map[string]Conditions, r Records, before Before, pending Pending, now clock.Moment) {
	w := &waves{conditions: conditions, records: r, before: before, known: map[waveKey]waveOf{}}
	for i := range batches {
		for j := range batches[i].Targets {
			d := &batches[i].Targets[j]
			d.Wanted, d.Rendered = conditions[d.Policy.Target].Wanted, conditions[d.Policy.Target].Rendered
			if r.Lost != nil {
				holdAll(d, *r.Lost)
				continue
			}
			gate(d, conditions[d.Policy.Target], r, now)
			d.Policy.Gates.Wave, d.Policy.Gates.Earlier = w.of(d)
			grant(d, conditions[d.Policy.Target], r, pending)
		}
	}
}

// grant sets what an approval lets run, and which approval waits for its plan to come back.
func grant(d *reconciler.Desired, c Conditions, r Records, pending Pending) {
	g := &d.Policy.Gates
	d.Begin = nil
	var last time.Time
	for _, a := range r.Approvals {
		// An approval from a pull request applies only after the merge.
		if a.For == d.Policy.Target && a.From == "" && a.Since.After(last) {
			g.Overtaken, last = a.Text(), a.Since
		}
	}
	for _, have := range r.Grants {
		if have.Target == d.Policy.Target && have.Rendered != "" && have.Rendered == c.Rendered {
			g.Grant = have.lets(false)
		}
	}
	if ready, ok := pending.Ready[d.Policy.Target]; ok {
		g.Grant = ready.lets(true)
		ready.Revision, ready.Rendered, ready.Seq = d.Commit.Revision, c.Rendered, c.Seq
		d.Begin = func(p *plan.Plan) error {
			of := plan.GrantOf(p)
			ready.Works, ready.Deletes = names(of.Works), names(of.Deletes)
			return pending.Begin(ready)
		}
	}
}

// Superseded returns the grants of the pass's targets that were given for an earlier desired state.
func Superseded(targets []reconciler.Desired, conditions map[string]Conditions, r Records) (out []Grant) {
	for _, g := range r.Grants {
		c := conditions[g.Target]
		of := func(d reconciler.Desired) bool { return d.Policy.Target == g.Target }
		if c.Rendered != "" && c.Rendered != g.Rendered && c.Seq >= g.Seq && slices.ContainsFunc(targets, of) {
			out = append(out, g)
		}
	}
	return out
}

func (g Grant) lets(exact bool) *model.Grant {
	out := &model.Grant{Digest: g.Digest, Exact: exact, Works: set(g.Works), Deletes: set(g.Deletes)}
	if len(g.Insists) > 0 {
		out.Insists = set(g.Insists)
	}
	return out
}

// holdAll holds every step of the target: a lost record may have been a suspension of it.
func holdAll(d *reconciler.Desired, lost state.Loss) {
	g := &d.Policy.Gates
	*g = model.Gates{AsReviewed: g.AsReviewed, Suspended: LossText(lost), Resume: "weir resume --all --after-loss"}
	d.Policy.Suspended, d.Begin = true, nil
	d.Policy.Adoption.Asked = false
	warn(d, diag.Diagnostic{Severity: diag.Warning, Code: "state-lost", Summary: "nothing is written, as " + g.Suspended})
}

// LossText describes a loss and the way to continue.
func LossText(lost state.Loss) string {
	since := ""
	if !lost.Since.IsZero() {
		since = " since " + lost.Since.UTC().Format("2 Jan 2006 15:04 MST")
	}
	return "suspensions and approvals may be lost" + since + ": " + lost.Why + "; suspend again what must stay suspended, then run weir resume --all --after-loss"
}

// gate sets the gates of a target from users' records and its maintenance windows.
func gate(d *reconciler.Desired, c Conditions, r Records, now clock.Moment) {
	g := &d.Policy.Gates
	*g = model.Gates{AsReviewed: g.AsReviewed, Waits: g.Waits}
	for _, s := range r.Suspensions {
		switch {
		case s.Target == "": // sorted first, so that the target's own suspension replaces the text
			d.Policy.Suspended, g.Suspended, g.Resume = true, "all targets are "+s.Text(), "weir resume --all, or the end of the suspension"
			noteSuspended(d, g.Suspended)
		case s.Target != d.Policy.Target:
		case s.Pool == "":
			d.Policy.Suspended, g.Suspended, g.Resume = true, s.Text(), "weir resume "+s.Target+", or the end of the suspension"
			noteSuspended(d, "the target is "+s.Text())
		default:
			if g.Pools == nil {
				g.Pools = map[string]string{}
			}
			g.Pools[s.Pool] = s.Text()
			noteSuspended(d, "the pool "+s.Pool+" is "+s.Text())
		}
	}
	if len(c.Windows) > 0 && !overridden(r, d.Policy.Target) {
		g.Window = windowText(c.Windows, now)
	}
}

// noteSuspended adds the suspensions to the report, even if no step waits.
func noteSuspended(d *reconciler.Desired, what string) {
	warn(d, diag.Diagnostic{Severity: diag.Info, Code: "suspended", Summary: what})
}

func warn(d *reconciler.Desired, said diag.Diagnostic) {
	if slices.ContainsFunc(d.Diagnostics, func(have diag.Diagnostic) bool { return have.Summary == said.Summary }) {
		return // a command runs several passes of one render
	}
	d.Diagnostics = append(slices.Clone(d.Diagnostics), said)
}

func overridden(r Records, target string) bool {
	for _, o := range r.Overrides {
		if o.Target == target {
			return true
		}
	}
	return false
}

// windowText returns the time of the next opening, or nothing while a window is open. While the time is
// uncertain, a window that may be closed counts as closed.
func windowText(windows []calendar.Window, now clock.Moment) string {
	if text := closedText(windows, now.Earliest); text != "" {
		return text
	}
	return closedText(windows, now.Latest)
}

// closedText describes when the next window opens. It is empty if a window is open now.
func closedText(windows []calendar.Window, now time.Time) string {
	next, ok := calendar.Next(windows, now)
	switch {
	case !ok:
		return "no window opens within two weeks"
	case next.Equal(now):
		return ""
	}
	zone := windows[0].Zone
	for _, w := range windows {
		if !w.Deny {
			zone = w.Zone
			break
		}
	}
	return "the next window opens on " + next.In(zone).Format("Mon 2 Jan 15:04 MST")
}

// Approved returns the plans that an approval covers: the plan of one target, or the plans of all targets
// that a commit of a source touched. Those plans have a common digest. The approval in each grant covers
// only that grant's plan.
func Approved(a Approval, before Before) []Grant {
	if a.Digest == "" {
		return nil // a plan made without the secrets has no digest, so no approval can match it
	}
	type commit struct{ source, revision string }
	together := map[commit][]*plan.Report{}
	for _, name := range names(keysOf(before.Reports)) {
		r := before.Reports[name]
		if r.Plan == nil {
			continue
		}
		if len(r.Plan.Steps) > 0 && r.Plan.Digest() == a.Digest {
			return []Grant{grantOf(a, r)}
		}
		if r.Touched {
			at := commit{r.Source, r.Revision}
			together[at] = append(together[at], r)
		}
	}
	for _, reports := range together {
		var all, busy []*plan.Plan
		var made []Grant
		for _, r := range reports {
			all = append(all, r.Plan)
			if len(r.Plan.Steps) > 0 {
				busy = append(busy, r.Plan)
				made = append(made, grantOf(a, r))
			}
		}
		if len(busy) > 0 && (plan.CombinedDigest(all) == a.Digest || plan.CombinedDigest(busy) == a.Digest) {
			return made
		}
	}
	return nil
}

func keysOf(m map[string]*plan.Report) map[string]bool {
	out := make(map[string]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}
