package awsemu

// warmPool is a warm pool's configuration.
type warmPool struct {
	MaxPrepared *int64
	Min         int64
	State       string
	Reuse       *bool // nil: no reuse policy was given
	Deleting    bool
}

type putWarmPoolInput struct {
	group string
	pool  warmPool
	min   *int64
	state string
}

func parsePutWarmPool(p *params) putWarmPoolInput {
	in := putWarmPoolInput{
		group: nameOf(p), min: p.optionalInt("MinSize"), state: p.text("PoolState"),
		pool: warmPool{MaxPrepared: p.optionalInt("MaxGroupPreparedCapacity")},
	}
	if sub := p.sub("InstanceReusePolicy"); sub != nil {
		reuse := sub.boolean("ReuseOnScaleIn")
		in.pool.Reuse = &reuse
	}
	return in
}

func putWarmPool(rq *request, in putWarmPoolInput) error {
	g, err := rq.region.changeableGroup(in.group)
	if err != nil {
		return err
	}
	switch {
	case g.activeRefresh() != nil:
		return fail("InstanceRefreshInProgress", "A warm pool cannot be changed while an instance refresh is in progress.")
	case g.Warm != nil && g.Warm.Deleting:
		return fail("ValidationError", "The warm pool is being deleted")
	case g.Config.Mixed != nil && g.Config.Mixed.Distribution.OnDemandPercent < 100:
		return fail("ValidationError", "You can't add a warm pool to an Auto Scaling group that has a mixed instances policy or that requests Spot Instances.")
	}
	pool := warmPool{State: "Stopped"}
	if g.Warm != nil {
		pool = *g.Warm
	}
	set(&pool.Min, in.min)
	pool.State = first(in.state, pool.State)
	if in.pool.Reuse != nil {
		pool.Reuse = in.pool.Reuse
	}
	if n := in.pool.MaxPrepared; n != nil {
		if pool.MaxPrepared = n; *n == -1 {
			pool.MaxPrepared = nil
		}
	}
	g.Warm = &pool
	rq.region.touch(g)
	return nil
}

// writeWarmPool writes WarmPoolConfiguration.
func (w *xmlWriter) writeWarmPool(pool *warmPool) {
	w.open("WarmPoolConfiguration")
	w.optionalInt("MaxGroupPreparedCapacity", pool.MaxPrepared)
	w.integer("MinSize", pool.Min)
	w.text("PoolState", pool.State)
	if pool.Deleting {
		w.text("Status", "PendingDelete")
	}
	if pool.Reuse != nil {
		w.open("InstanceReusePolicy")
		w.boolean("ReuseOnScaleIn", *pool.Reuse)
		w.close("InstanceReusePolicy")
	}
	w.close("WarmPoolConfiguration")
}

type describeWarmPoolInput struct {
	group, token string
	limit        int
}

func parseDescribeWarmPool(p *params) describeWarmPoolInput {
	return describeWarmPoolInput{group: nameOf(p), token: p.text("NextToken"), limit: pageLimit(p, 50, 50)}
}

func describeWarmPool(rq *request, in describeWarmPoolInput) error {
	g, err := rq.region.findGroup(in.group)
	if err != nil {
		return err
	}
	w := &rq.xml
	if g.Warm != nil {
		w.writeWarmPool(g.Warm)
	}
	ids, rows := g.warmRows()
	w.open("Instances")
	next, err := rq.page(ids, in.token, in.limit, func(id string) bool {
		w.open("member")
		w.writeMember(rq.region, rows[id])
		w.close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.close("Instances")
	w.optional("NextToken", next)
	return nil
}

func deleteWarmPool(rq *request, in deleteGroupInput) error {
	r := rq.region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	if g.Warm == nil {
		return fail("ValidationError", "No warm pool found for Auto Scaling group %s", in.name)
	}
	if !g.Warm.Deleting {
		r.removeWarm(g)
	}
	return nil
}

func runWarmPoolGone(r *region, key string) {
	g := r.groupByKey(key)
	switch {
	case g == nil || g.Warm == nil || !g.Warm.Deleting:
	case len(g.WarmMembers) > 0:
		r.after(r.timings().InstanceShutdown, timerWarmPool, key)
	default:
		g.Warm = nil
	}
}
