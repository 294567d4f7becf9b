package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/client"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/records"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/rollout/ledger"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/commands"
)

// gating makes a command hold the same steps as the daemon: because of user requests, windows and waves.
type gating struct {
	clock      *clock.Clock
	conditions map[string]gates.Conditions
	records    gates.Records
	// rollouts contains the records of rollouts by source, as far as they could be read.
	rollouts map[string]*rollout.Record
	// all contains all targets of the configuration, because chosen targets may wait for targets that are
	// not chosen.
	all    []reconciler.Batch
	known  gates.Before
	passes int
	// ready contains the unused approvals, by target. Only the daemon writes their record, so gating stores
	// in memory which ones have been started.
	mu    sync.Mutex
	ready map[string]gates.Grant
}

// newGating returns a gating. It fails if a command that writes cannot read the requests of users.
func newGating(ctx context.Context, env Env, c *config.Config, composed *fleet.Composition, now *clock.Clock, writes bool) (*gating, error) {
	g := &gating{clock: now, conditions: composed.Conditions, all: slices.Clone(composed.Batches)}
	for i := range g.all { // leave none of them out
		g.all[i].Targets = slices.Clone(g.all[i].Targets)
	}
	var err error
	switch g.records, g.rollouts, err = readRecords(ctx, env, c, now); {
	case err != nil && writes:
		return nil, advice.Hinted(fmt.Errorf("read suspensions and approvals: %w", err), "without them nothing is written")
	case err != nil:
		env.Note("suspensions and approvals are not read: " + err.Error())
	}
	return g, nil
}

// readRecords reads the requests of users from the state directory, or from the daemon that has it open.
// With several daemons, it asks a daemon that answers, or the engine that they share.
func readRecords(ctx context.Context, env Env, c *config.Config, now *clock.Clock) (out gates.Records, rollouts map[string]*rollout.Record, err error) {
	var silent error
	if c.Several() {
		if out, silent = askRecords(ctx, env, c); silent == nil {
			return out, nil, nil
		}
	}
	db, done, err := records.Read(ctx, c)
	var lost *state.UnreadableError
	switch {
	case errors.As(err, &lost):
		out.Lost = lost.Loss()
		return out, nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return out, nil, nil
	case errors.Is(err, state.ErrInUse):
		out, err = askRecords(ctx, env, c)
		return out, nil, err
	case err != nil:
		return out, nil, errors.Join(err, silent)
	}
	defer func() { err = errors.Join(err, done()) }()
	rollouts = map[string]*rollout.Record{}
	for _, s := range c.Sources {
		if rollouts[s.Name], err = ledger.Open(db).Read(s.Name); err != nil {
			return out, nil, err
		}
	}
	return gates.NewRecorder(db, now.Moment).Read(), rollouts, nil
}

func askRecords(ctx context.Context, env Env, c *config.Config) (out gates.Records, err error) {
	d, err := client.Find(client.Options{Getenv: env.Getenv}, c)
	if err != nil {
		return out, err
	}
	return out, d.Ask(ctx, commands.RecordsPath, &out)
}

// lossText returns the reason why nothing is written at all, or "".
func (g *gating) lossText() string {
	if g == nil || g.records.Lost == nil {
		return ""
	}
	return gates.LossText(*g.records.Lost)
}

// before sets the gates of a pass. Before the first pass, it plans the targets that others wait for, and
// finds the approved plans.
func (g *gating) before(ctx context.Context, batches []reconciler.Batch) {
	if g == nil {
		return
	}
	if g.passes == 0 && (g.waits(batches) || len(g.records.Approvals) > 0) {
		gates.Gate(g.all, g.conditions, g.records, g.known, gates.Pending{}, g.clock.Moment())
		for _, b := range g.all {
			for i := range b.Targets { // for later targets it does not matter that it waits itself
				b.Targets[i].Policy.Gates.Wave = ""
			}
			g.recordStates(ctx, b)
		}
		g.ready = map[string]gates.Grant{}
		for _, a := range g.records.Approvals {
			for _, ready := range gates.Approved(a, g.known) {
				g.ready[ready.Target] = ready
			}
		}
	}
	g.passes++
	g.renew(ctx, batches)
	gates.Gate(batches, g.conditions, g.records, g.known, gates.Pending{Ready: g.ready, Begin: g.startGrant}, g.clock.Moment())
}

// recordStates records the state of the targets of a scope.
func (g *gating) recordStates(ctx context.Context, b reconciler.Batch) {
	for _, r := range reconciler.RunBatch(ctx, b, reconciler.PlanOnly) {
		g.known.Note(r)
	}
}

// renew reads targets again if later targets have seen newer facts, because the earlier targets may be
// about to change.
func (g *gating) renew(ctx context.Context, batches []reconciler.Batch) {
	fresh := map[string]time.Time{}
	for _, b := range batches {
		for _, d := range b.Targets {
			for name, at := range gates.Renewals(d.Policy.Target, g.conditions, g.known) {
				if at.After(fresh[name]) {
					fresh[name] = at
				}
			}
		}
	}
	for _, b := range g.all {
		for _, d := range b.Targets {
			if at := fresh[d.Policy.Target]; at.After(b.Fresh) {
				b.Fresh = at
			}
		}
		if !b.Fresh.IsZero() {
			g.recordStates(ctx, b)
		}
	}
}

// opens reports whether the targets that a target comes after permit it to continue now.
func (g *gating) opens(target string) bool {
	if g == nil {
		return false
	}
	for _, b := range g.all {
		for i := range b.Targets {
			if d := &b.Targets[i]; d.Policy.Target == target {
				return gates.Wave(d, g.conditions, g.records, g.known) == ""
			}
		}
	}
	return false
}

// startGrant makes later passes execute the remaining steps of an approved plan.
func (g *gating) startGrant(ready gates.Grant) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ready, ready.Target)
	g.records.Grants = slices.DeleteFunc(g.records.Grants, func(old gates.Grant) bool { return old.Target == ready.Target })
	g.records.Grants = append(g.records.Grants, ready)
	return nil
}

func (g *gating) waits(batches []reconciler.Batch) bool {
	return slices.ContainsFunc(batches, func(b reconciler.Batch) bool {
		return slices.ContainsFunc(b.Targets, func(d reconciler.Desired) bool { return len(g.conditions[d.Policy.Target].DependsOn) > 0 })
	})
}

// after processes a report. If a target was not chosen, only the command itself prevents its steps.
func (g *gating) after(r *plan.Report, chosen bool) {
	if g == nil {
		return
	}
	g.known.Note(r)
	if s := g.known.Standings[r.Target]; !chosen && r.Suspended && !s.Lets() {
		s.Held, s.Why = "", "has not converged yet, and not a target of this command"
		g.known.Standings[r.Target] = s
	}
}
