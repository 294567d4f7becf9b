package asg

import (
	"cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// WarmPool is a warm pool's configuration.
type WarmPool struct {
	MaxPrepared *int64
	Min         int64
	State       string
	Reuse       *bool // nil: no reuse policy was given
	Deleting    bool
}

type putWarmPoolInput struct {
	group string
	pool  WarmPool
	min   *int64
	state string
}

func parsePutWarmPool(p *wire.Params) putWarmPoolInput {
	in := putWarmPoolInput{
		group: nameOf(p), min: p.OptionalInt("MinSize"), state: p.Text("PoolState"),
		pool: WarmPool{MaxPrepared: p.OptionalInt("MaxGroupPreparedCapacity")},
	}
	if sub := p.Sub("InstanceReusePolicy"); sub != nil {
		reuse := sub.Boolean("ReuseOnScaleIn")
		in.pool.Reuse = &reuse
	}
	return in
}

func putWarmPool(rq *request, in putWarmPoolInput) error {
	g, err := rq.Region.changeableGroup(in.group)
	if err != nil {
		return err
	}
	switch {
	case g.activeRefresh() != nil:
		return wire.Fail("InstanceRefreshInProgress", "A warm pool cannot be changed while an instance refresh is in progress.")
	case g.Warm != nil && g.Warm.Deleting:
		return wire.Fail("ValidationError", "The warm pool is being deleted")
	case g.Config.Mixed != nil && g.Config.Mixed.Distribution.OnDemandPercent < 100:
		return wire.Fail("ValidationError", "You can't add a warm pool to an Auto Scaling group that has a mixed instances policy or that requests Spot Instances.")
	}
	pool := WarmPool{State: "Stopped"}
	if g.Warm != nil {
		pool = *g.Warm
	}
	Set(&pool.Min, in.min)
	pool.State = cmp.Or(in.state, pool.State)
	if in.pool.Reuse != nil {
		pool.Reuse = in.pool.Reuse
	}
	if n := in.pool.MaxPrepared; n != nil {
		if pool.MaxPrepared = n; *n == -1 {
			pool.MaxPrepared = nil
		}
	}
	g.Warm = &pool
	rq.Region.Touch(g)
	return nil
}

// writeWarmPool writes WarmPoolConfiguration.
func writeWarmPool(w *wire.XML, pool *WarmPool) {
	w.Open("WarmPoolConfiguration")
	w.OptionalInt("MaxGroupPreparedCapacity", pool.MaxPrepared)
	w.Integer("MinSize", pool.Min)
	w.Text("PoolState", pool.State)
	if pool.Deleting {
		w.Text("Status", "PendingDelete")
	}
	if pool.Reuse != nil {
		w.Open("InstanceReusePolicy")
		w.Boolean("ReuseOnScaleIn", *pool.Reuse)
		w.Close("InstanceReusePolicy")
	}
	w.Close("WarmPoolConfiguration")
}

type describeWarmPoolInput struct {
	group, token string
	limit        int
}

func parseDescribeWarmPool(p *wire.Params) describeWarmPoolInput {
	return describeWarmPoolInput{group: nameOf(p), token: p.Text("NextToken"), limit: pageLimit(p, 50, 50)}
}

func describeWarmPool(rq *request, in describeWarmPoolInput) error {
	g, err := rq.Region.findGroup(in.group)
	if err != nil {
		return err
	}
	w := &rq.XML
	if g.Warm != nil {
		writeWarmPool(w, g.Warm)
	}
	ids, rows := g.warmRows()
	w.Open("Instances")
	next, err := rq.Page(ids, in.token, in.limit, func(id string) bool {
		w.Open("member")
		writeMember(w, rq.Region, rows[id])
		w.Close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("Instances")
	w.Optional("NextToken", next)
	return nil
}

func deleteWarmPool(rq *request, in deleteGroupInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	if g.Warm == nil {
		return wire.Fail("ValidationError", "No warm pool found for Auto Scaling group %s", in.name)
	}
	if !g.Warm.Deleting {
		r.RemoveWarm(g)
	}
	return nil
}

func runWarmPoolGone(r *Region, key string) {
	g := r.groupByKey(key)
	switch {
	case g == nil || g.Warm == nil || !g.Warm.Deleting:
	case len(g.WarmMembers) > 0:
		r.After(r.Timings().InstanceShutdown, timerWarmPool, key)
	default:
		g.Warm = nil
	}
}
