package app

import (
	"log/slog"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/rollout/ledger"
)

// gating restricts the steps of one pass according to the records of rollouts. It reads each record once.
type gating struct {
	ledger *ledger.Ledger
	specs  map[string]fleetSpecs
	log    *slog.Logger
	// governors and records are keyed by source.
	governors map[string]*rollout.Governor
	records   map[string]*rollout.Record
}

// watchEvery is the maximum interval between reads of pools that gates check. With it, a bad signal stops
// the change within a minute.
const watchEvery = 20 * time.Second

func newGating(l *ledger.Ledger, specs map[string]fleetSpecs, log *slog.Logger) gating {
	return gating{ledger: l, specs: specs, log: log, governors: map[string]*rollout.Governor{}, records: map[string]*rollout.Record{}}
}

// restrict restricts a target of a batch. It returns the permits that allow a rollout.
func (g gating) restrict(b *reconciler.Batch, d *reconciler.Desired) (rolls []rollout.Permit) {
	g.markBad(d)
	d.Policy.Gates.Rollouts = g.permits(d)
	if by := g.governors[d.Source]; by != nil && len(d.Policy.Gates.Rollouts) > 0 {
		d.Policy.Gates.Activities = by.Activities()
		if d.Policy.Waves != nil {
			d.Policy.Demand(by.Unmet(d.Policy.Waves.Demand, d.Policy.Target, d.Policy.Gates.Rollouts))
		}
		if since := by.Gathers(d.Policy.Target); since.After(b.Fresh) {
			b.Fresh = since
		}
	}
	for _, permit := range d.Policy.Gates.Rollouts {
		if permit.Watched {
			b.Within = watchEvery
		}
		d.Policy.Gates.Alarms = append(d.Policy.Gates.Alarms, permit.Alarms...)
		if permit.Share > 0 {
			rolls = append(rolls, permit)
		}
	}
	slices.Sort(d.Policy.Gates.Alarms)
	d.Policy.Gates.Alarms = slices.Compact(d.Policy.Gates.Alarms)
	return rolls
}

// permits returns the permits of the governed pools of a target; nil for none.
func (g gating) permits(d *reconciler.Desired) map[string]rollout.Permit {
	if d.Set == nil {
		return nil
	}
	by, known := g.governors[d.Source]
	if !known {
		record, err := g.ledger.Read(d.Source)
		if err != nil {
			// Pools that may be governed wait, because their rollout may have been stopped.
			g.log.Error("the record of rollouts cannot be read", "source", d.Source, "error", err)
			out := map[string]rollout.Permit{}
			for i := range d.Set.Pools {
				out[d.Set.Pools[i].Key.String()] = rollout.Permit{Wait: "waits until the record of rollouts can be read: see weir's log"}
			}
			return out
		}
		by = rollout.NewGovernor(record, g.specs[d.Source].specs)
		g.governors[d.Source] = by
	}
	return by.Permits(d.Policy.Target, d.Set.Pools)
}

// markBad adds the bad launch configurations to a target that uses an earlier revision.
func (g gating) markBad(d *reconciler.Desired) {
	if d.Set == nil || d.Policy.Fallback == nil && len(d.Policy.FallbackPools) == 0 {
		return
	}
	bad, unread := g.badOf(d)
	mark := func(h model.Fallback) *model.Fallback {
		h.Bad, h.Unread = bad, unread
		return &h
	}
	if d.Policy.Fallback != nil {
		d.Policy.Fallback = mark(*d.Policy.Fallback)
	}
	pools := make(map[string]*model.Fallback, len(d.Policy.FallbackPools))
	for pool, h := range d.Policy.FallbackPools {
		pools[pool] = mark(*h)
	}
	d.Policy.FallbackPools = pools
}

// badOf returns the launch configurations of a target that were found bad, by pool, or the reason why they
// cannot be read.
func (g gating) badOf(d *reconciler.Desired) (bad map[string][]string, unread string) {
	record, read := g.records[d.Source]
	if !read {
		var err error
		if record, err = g.ledger.Read(d.Source); err != nil {
			g.log.Error("the record of rollouts cannot be read", "source", d.Source, "error", err)
			return nil, "the record of rollouts cannot be read: see weir's log"
		}
		g.records[d.Source] = record
	}
	bad = map[string][]string{}
	for _, b := range record.Bad {
		if b.Target == d.Policy.Target {
			bad[b.Pool] = append(bad[b.Pool], b.Hash)
		}
	}
	return bad, ""
}
