// Package simulate shows what a change does over time before it is made. It runs weir's own passes
// on a copy of AWS as a plan saw it, in this process and by a clock of its own.
//
// A Scene has the inputs of plans: for each account and region the observed state, the answers to lookups,
// and the desired state. Run copies each into an emulator with the rates of EC2 and Auto Scaling, and makes
// passes over the copies like the daemon's loops, with its gates, windows, waves and FleetRollouts. Time
// advances from each pass to the next one that may see a change.
//
// A simulation reads nothing from AWS, Git or a cluster, and writes nothing. Facts that are not in the scene
// are assumed, and reported as assumptions.
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

// Scene is the start of a simulation.
type Scene struct {
	// Now is the time of the read of AWS.
	Now    time.Time
	Stages []Stage
	// Conditions are by target. Records are the requests of people.
	Conditions map[string]gates.Conditions
	Records    gates.Records
	// Rollouts has the records of rollouts, by source. It may be empty.
	Rollouts map[string]*rollout.Record
	// Elsewhere lists batches that are not simulated. Their FleetRollouts also apply.
	Elsewhere []reconciler.Batch
	// Shown has the targets to report. If it is nil, all are reported.
	Shown map[string]bool
}

// Stage is one account and region.
type Stage struct {
	// Batch has the desired state. Its Scope is not used.
	Batch reconciler.Batch
	// Inputs are the inputs of the pass that made the plans of Reports.
	Inputs  *reconciler.PassInputs
	Reports []*plan.Report
}

// Assumptions are the durations of actions of AWS and people. Zero means the default.
type Assumptions struct {
	MachineReady    time.Duration
	MachineGone     time.Duration
	NodegroupCreate time.Duration
	NodegroupUpdate time.Duration
	NodegroupDelete time.Duration
	// Approved assumes that each approval is given at once.
	Approved bool
	// Free assumes that windows are open, nothing is suspended, and no earlier rollout is in progress. It
	// shows the effect of the change alone, independent of its time.
	Free bool
	// Share is the fraction of AWS's write limits that weir uses. Zero means the default.
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

// Progress is the progress of a running simulation.
type Progress struct {
	Passes int
	// Simulated is the simulated time so far.
	Simulated time.Duration
}

// ErrNothing says that no account's state is available.
var ErrNothing = errors.New("AWS could not be read, so there is nothing to simulate from")

// passesEach is the number of passes between two reports of progress.
const passesEach = 20

// Run simulates a scene. It ends when nothing changes any more, all remaining steps wait for a person, or
// ctx is done. In the last case the timeline is incomplete. Run fails if an account cannot be copied.
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

// staging is a simulation in progress.
type staging struct {
	a      Assumptions
	scene  Scene
	rec    *timeline.Recorder
	places []*place
	known  gates.Before
	// sources lists the sources with FleetRollouts, in order.
	sources []*source
	doubts  []string
}

// newStaging prepares the simulation of a scene. It returns ErrNothing if no stage was observed.
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

// open removes all windows.
func open(all map[string]gates.Conditions) map[string]gates.Conditions {
	out := make(map[string]gates.Conditions, len(all))
	for name, c := range all {
		c.Windows = nil
		out[name] = c
	}
	return out
}

// among removes dependencies on targets that are not simulated, because those do not change.
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

// next returns the place whose pass is due first, or nil. It first conducts rollouts that are due earlier.
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
