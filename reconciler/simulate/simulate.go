// Package simulate shows what a change does over time before it is made. It runs weir's own passes
// on a copy of AWS as a plan saw it, in this process and by a clock of its own.
//
// A Scene holds the inputs of plans: for each account and region the observed state, the answers to
// lookups, and what Git wants. Run copies each into an embedded AWS with EC2's and Auto Scaling's
// rates on, and makes passes over the copies as the daemon's loops do, with its gates, windows,
// waves and FleetRollouts. Time goes on from each pass to the next one that has something to see. A
// simulation reads nothing from AWS, Git or a cluster, and writes nothing anywhere: what is not in
// the scene is assumed, and reported as assumed.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
)

// Scene holds the start of a simulation.
type Scene struct {
	// Now is the time when AWS was read.
	Now    time.Time
	Stages []Stage
	// Conditions are by target, Records what people asked for.
	Conditions map[string]gates.Conditions
	Records    gates.Records
	// Rollouts are the records of rollouts, by source; none where nothing is recorded.
	Rollouts map[string]*rollout.Record
	// Elsewhere are batches that are not simulated: their FleetRollouts hold as well.
	Elsewhere []reconciler.Batch
	// Shown holds the targets to report; nil for all.
	Shown map[string]bool
}

// Stage is one account and region.
type Stage struct {
	// Batch holds what is wanted; its Scope is not used.
	Batch reconciler.Batch
	// Inputs holds the inputs of the pass that made the plans of Reports.
	Inputs  *reconciler.PassInputs
	Reports []*plan.Report
}

// Assumptions are the durations that AWS and people take. A zero means the default.
type Assumptions struct {
	MachineReady    time.Duration
	MachineGone     time.Duration
	NodegroupCreate time.Duration
	NodegroupUpdate time.Duration
	NodegroupDelete time.Duration
	// Approved takes it that each approval is given at once.
	Approved bool
	// Free assumes that windows are open, nothing is suspended, and no earlier rollout is in
	// progress: it shows the effect of the change alone, whenever it is made.
	Free bool
	// Share is the part of AWS's rates for writes that weir takes, the default if 0.
	Share float64
	// Most bounds the simulated time.
	Most time.Duration
}

// Defaults of Assumptions.
const (
	DefaultMachineReady    = 3 * time.Minute
	DefaultMachineGone     = time.Minute
	DefaultNodegroupCreate = 150 * time.Second
	DefaultNodegroupUpdate = time.Minute
	DefaultNodegroupDelete = 4 * time.Minute
	DefaultMost            = 14 * 24 * time.Hour
)

func (a Assumptions) filled() Assumptions {
	for _, d := range []struct {
		of    *time.Duration
		value time.Duration
	}{
		{&a.MachineReady, DefaultMachineReady}, {&a.MachineGone, DefaultMachineGone}, {&a.NodegroupCreate, DefaultNodegroupCreate},
		{&a.NodegroupUpdate, DefaultNodegroupUpdate}, {&a.NodegroupDelete, DefaultNodegroupDelete}, {&a.Most, DefaultMost},
	} {
		if *d.of <= 0 {
			*d.of = d.value
		}
	}
	return a
}

func (a Assumptions) timings() world.Timings {
	t := world.Realistic()
	t.InstancePending, t.InstanceShutdown, t.RefreshBatch, t.Warmups = a.MachineReady, a.MachineGone, a.MachineReady, true
	t.NodegroupCreate, t.NodegroupUpdate, t.NodegroupDelete = a.NodegroupCreate, a.NodegroupUpdate, a.NodegroupDelete
	return t
}

// said returns the assumptions in the form of a timeline.
func (a Assumptions) said() []timeline.Assumption {
	text := func(d time.Duration) string { return d.String() }
	out := []timeline.Assumption{
		{What: "a machine is in service, and Ready in its cluster, within", Value: text(a.MachineReady), Flag: "--machine-ready"},
		{What: "a machine has ended within", Value: text(a.MachineGone), Flag: "--machine-gone"},
		{What: "EKS creates a nodegroup, without its machines, within", Value: text(a.NodegroupCreate), Flag: "--nodegroup-create"},
		{What: "EKS updates a nodegroup, without its machines, within", Value: text(a.NodegroupUpdate), Flag: "--nodegroup-update"},
		{What: "capacity, quotas and addresses suffice, and AWS refuses nothing"},
		{What: "nobody else calls AWS, scales a pool or changes Git"},
		{What: "lifecycle hooks are completed at once, and disruption budgets delay no machine"},
		{What: "no alarm goes off, and Prometheus gates pass"},
	}
	if a.Free {
		out = append(out, timeline.Assumption{What: "windows are open, nothing is suspended, and no other rollout is running"})
	}
	if a.Approved {
		out = append(out, timeline.Assumption{What: "every approval is given at once", Flag: "--approved"})
	}
	return out
}

// Progress is the progress of a simulation.
type Progress struct {
	Passes int
	// Simulated is the simulated time so far.
	Simulated time.Duration
}

// ErrNothing says that no plan of any account had a state of AWS.
var ErrNothing = errors.New("AWS could not be read, so there is nothing to simulate from")

// passesEach is the number of passes between two reports of progress.
const passesEach = 20

// Run simulates a scene. It ends when nothing goes on any more, what is left waits for
// somebody, or ctx is done: then the timeline says that it is incomplete. It fails where an
// account cannot be copied.
func Run(ctx context.Context, s Scene, a Assumptions, told func(Progress)) (*timeline.Timeline, error) {
	w, err := newStaging(ctx, s, a.filled())
	if err != nil {
		return nil, err
	}
	defer w.close()
	for n := 1; ; n++ {
		p := w.next()
		if p == nil {
			return w.finish(""), nil
		}
		switch passed := p.next.Sub(s.Now); {
		case ctx.Err() != nil:
			return w.finish(fmt.Sprintf("the simulation stopped after %s of simulated time", p.clock.Now().Sub(s.Now).Round(time.Second))), nil
		case passed > w.a.Most:
			return w.finish(fmt.Sprintf("the rollout has not ended after %s", w.a.Most)), nil
		}
		if err := w.pass(ctx, p); err != nil {
			if ctx.Err() != nil {
				continue
			}
			return nil, err
		}
		if told != nil && n%passesEach == 0 {
			told(Progress{Passes: n, Simulated: p.clock.Now().Sub(s.Now)})
		}
	}
}

// staging is a simulation under way.
type staging struct {
	a      Assumptions
	scene  Scene
	rec    *timeline.Recorder
	places []*place
	known  gates.Before
	// sources are those with FleetRollouts, in order.
	sources []*source
	doubts  []string
}

func newStaging(ctx context.Context, s Scene, a Assumptions) (w *staging, err error) {
	if a.Free {
		s.Records, s.Rollouts, s.Conditions = gates.Records{}, nil, open(s.Conditions)
	}
	w = &staging{a: a, scene: s, rec: timeline.New(s.Now)}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	for i := range s.Stages {
		st := &s.Stages[i]
		if st.Inputs == nil || st.Inputs.State.Region == "" {
			continue
		}
		p, err := newPlace(ctx, st, s.Now, a)
		if err != nil {
			return w, err
		}
		w.places = append(w.places, p)
	}
	if len(w.places) == 0 {
		return w, ErrNothing
	}
	simulated := map[string]bool{}
	for _, p := range w.places {
		for i := range p.batch.Targets {
			d := &p.batch.Targets[i]
			simulated[d.Policy.Target] = true
			if w.shows(d.Policy.Target) {
				w.rec.Target(d.Policy.Target, d.Policy.Account, d.Policy.Region)
			}
		}
	}
	w.scene.Conditions = among(s.Conditions, simulated)
	for _, p := range w.places {
		w.doubts = append(append(w.doubts, p.left...), p.compare(ctx, w)...)
	}
	w.findSources()
	return w, nil
}

// open leaves out all windows.
func open(all map[string]gates.Conditions) map[string]gates.Conditions {
	out := make(map[string]gates.Conditions, len(all))
	for name, c := range all {
		c.Windows = nil
		out[name] = c
	}
	return out
}

// among leaves out the targets that others wait for and that are not simulated: they stay as
// they are.
func among(all map[string]gates.Conditions, simulated map[string]bool) map[string]gates.Conditions {
	out := make(map[string]gates.Conditions, len(all))
	for name, c := range all {
		c.DependsOn = slices.DeleteFunc(slices.Clone(c.DependsOn), func(on string) bool { return !simulated[on] })
		out[name] = c
	}
	return out
}

func (w *staging) shows(target string) bool { return w.scene.Shown == nil || w.scene.Shown[target] }

func (w *staging) close() {
	for _, p := range w.places {
		p.cloud.Close()
	}
}

// next is the place whose pass is due first, nil where none is. Rollouts are conducted that
// are due before.
func (w *staging) next() *place {
	for {
		var first *place
		for _, p := range w.places {
			if !p.next.IsZero() && (first == nil || p.next.Before(first.next)) {
				first = p
			}
		}
		var due *source
		for _, s := range w.sources {
			if !s.again.IsZero() && (due == nil || s.again.Before(due.again)) {
				due = s
			}
		}
		if due == nil || first != nil && !due.again.Before(first.next) || due.again.Sub(w.scene.Now) > w.a.Most {
			return first
		}
		w.conduct(due, due.again)
	}
}

func (w *staging) finish(why string) *timeline.Timeline {
	t := w.rec.Finish(why)
	t.Assumptions, t.Doubts = w.a.said(), w.doubts
	return t
}
