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
	groupName
	MaxGroupPreparedCapacity, MinSize *int64
	PoolState                         string
	InstanceReusePolicy               *struct{ ReuseOnScaleIn bool }
}

func putWarmPool(rq *request, in putWarmPoolInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	switch {
	case g.activeRefresh() != nil:
		return wire.Fail("InstanceRefreshInProgress", "A warm pool cannot be changed while an instance refresh is in progress.")
	case g.Warm != nil && g.Warm.Deleting:
		return invalid("The warm pool is being deleted")
	case g.Config.Mixed != nil && g.Config.Mixed.Distribution.OnDemandPercent < 100:
		return invalid("You can't add a warm pool to an Auto Scaling group that has a mixed instances policy or that requests Spot Instances.")
	}
	pool := WarmPool{State: "Stopped"}
	if g.Warm != nil {
		pool = *g.Warm
	}
	Set(&pool.Min, in.MinSize)
	pool.State = cmp.Or(in.PoolState, pool.State)
	if in.InstanceReusePolicy != nil {
		pool.Reuse = &in.InstanceReusePolicy.ReuseOnScaleIn
	}
	if n := in.MaxGroupPreparedCapacity; n != nil {
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
	paging
	groupName
}

func (in *describeWarmPoolInput) Check() error { return in.bound(50, 50) }

func describeWarmPool(rq *request, in describeWarmPoolInput) error {
	g, err := rq.Region.findGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	w := &rq.XML
	if g.Warm != nil {
		writeWarmPool(w, g.Warm)
	}
	ids, rows := g.warmRows()
	w.Open("Instances")
	next, err := rq.Page(ids, in.NextToken, in.limit, func(id string) bool {
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
	g, err := r.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	if g.Warm == nil {
		return invalid("No warm pool found for Auto Scaling group %s", in.AutoScalingGroupName)
	}
	if !g.Warm.Deleting {
		Warm(r, g).Remove()
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
