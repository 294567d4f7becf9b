package eks

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sort"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// update starts an update of a nodegroup if its state allows it, at most once per token.
func update(rq *request, token string, begin func(*Cluster, *nodegroup) (*Update, *wire.Error)) (any, error) {
	err := rq.Idempotent(token, func(string) bool { return true }, func() (string, error) {
		c, ng, err := nodegroupOf(rq)
		if err != nil {
			return "", err
		}
		failed := ng.updatable(c)
		if failed == nil {
			var u *Update
			if u, failed = begin(c, ng); failed == nil {
				rq.Reply = u.out()
				return ng.Name, nil
			}
		}
		return "", failed.With("clusterName", c.Name).With("nodegroupName", ng.Name)
	})
	return rq.Reply, err
}

// updatable returns an error if the nodegroup cannot be updated now.
func (ng *nodegroup) updatable(c *Cluster) *wire.Error {
	switch {
	case ng.Status == updating:
		return wire.Fail("ResourceInUseException", "Nodegroup cannot be updated as it is currently not in Active State")
	case ng.Status != active:
		return refused("Nodegroup cannot be updated as it is currently in %s state", ng.Status)
	case c.Status != active:
		return refused("Cluster '%s' is not in ACTIVE status", c.Name)
	}
	return nil
}

// maxUpdates is the number of stored updates per nodegroup.
const maxUpdates = 100

// beginUpdate records an update.
func (r *Region) beginUpdate(ng *nodegroup, kind string, params []updateParam) *Update {
	u := r.newUpdate(kind, params)
	ng.Updates = append(ng.Updates, u)
	if n := len(ng.Updates); n > maxUpdates {
		ng.Updates = append([]*Update(nil), ng.Updates[n-maxUpdates:]...)
	}
	ng.enter(r, updating)
	return u
}

type updateConfigInput struct {
	Labels struct {
		Set    map[string]string `json:"addOrUpdateLabels"`
		Remove []string          `json:"removeLabels"`
	} `json:"labels"`
	Taints struct {
		Set    []taint `json:"addOrUpdateTaints"`
		Remove []taint `json:"removeTaints"`
	} `json:"taints"`
	Scaling      *scaling        `json:"scalingConfig"`
	UpdateConfig *updateConfig   `json:"updateConfig"`
	Repair       *repairConfig   `json:"nodeRepairConfig"`
	WarmPool     *warmPoolConfig `json:"warmPoolConfig"`
	Token        string          `json:"clientRequestToken"`
}

func updateNodegroupConfig(rq *request, in updateConfigInput) (any, error) {
	r := rq.Region
	return update(rq, in.Token, func(_ *Cluster, ng *nodegroup) (*Update, *wire.Error) {
		changed := *ng
		if err := in.apply(r, &changed); err != nil {
			return nil, err
		}
		*ng = changed
		r.resize(ng, in.Scaling)
		if in.WarmPool != nil {
			r.applyWarm(ng)
		}
		u := r.beginUpdate(ng, "ConfigUpdate", in.params())
		r.tickNodegroup(ng, r.Timings().NodegroupUpdate)
		return u, nil
	})
}

// empty reports whether a request changes nothing.
func (in *updateConfigInput) empty() bool {
	s := in.Scaling
	return (s == nil || *s == scaling{}) && len(in.Labels.Set)+len(in.Labels.Remove)+len(in.Taints.Set)+len(in.Taints.Remove) == 0 &&
		(in.UpdateConfig == nil || *in.UpdateConfig == updateConfig{}) && in.Repair == nil && in.WarmPool == nil
}

// apply applies the request to a copy of the nodegroup.
func (in *updateConfigInput) apply(r *Region, ng *nodegroup) *wire.Error {
	if in.empty() {
		return invalid("You cannot specify an empty request")
	}
	if err := in.applyScaling(r, ng); err != nil {
		return err
	}
	labels := map[string]string{}
	for k, v := range ng.Labels {
		labels[k] = v
	}
	for _, k := range in.Labels.Remove {
		if _, both := in.Labels.Set[k]; both {
			return invalid("Label %s cannot be both added and removed", k)
		}
		delete(labels, k)
	}
	for k, v := range in.Labels.Set {
		labels[k] = v
	}
	ng.Labels, ng.Taints = labels, mergedTaints(ng.Taints, in.Taints.Set, in.Taints.Remove)
	if in.UpdateConfig != nil {
		if ng.UpdateConfig = *in.UpdateConfig; ng.UpdateConfig.Max == nil && ng.UpdateConfig.Percentage == nil {
			one := int64(1)
			ng.UpdateConfig.Max = &one
		}
	}
	if in.Repair != nil {
		ng.Repair = in.Repair
	}
	if in.WarmPool != nil {
		ng.WarmPool = ng.WarmPool.merged(in.WarmPool)
	}
	for _, err := range []*wire.Error{
		checkLabels(in.Labels.Set), checkTaints(in.Taints.Set), checkTaints(ng.Taints),
		ng.UpdateConfig.check(), ng.UpdateConfig.fits(*ng.Scaling.Max), in.Repair.check(), in.WarmPool.check(ng.CustomImage),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (in *updateConfigInput) applyScaling(r *Region, ng *nodegroup) *wire.Error {
	if in.Scaling == nil {
		return nil
	}
	s := ng.Scaling
	if g := ng.group(r); g != nil {
		desired := g.Desired
		s.Desired = &desired
	}
	for _, f := range []struct{ to, from **int64 }{{&s.Min, &in.Scaling.Min}, {&s.Max, &in.Scaling.Max}, {&s.Desired, &in.Scaling.Desired}} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	if in.Scaling.Desired == nil && s.Min != nil && s.Max != nil {
		desired := min(max(*s.Desired, *s.Min), *s.Max)
		s.Desired = &desired
	}
	if err := s.check(r.Quota("nodes-per-nodegroup")); err != nil {
		return err
	}
	ng.Scaling = s
	return nil
}

// resize sets the group's sizes to the nodegroup's.
func (r *Region) resize(ng *nodegroup, sent *scaling) {
	if g := ng.group(r); g != nil && !g.Deleting && sent != nil {
		g.Min, g.Max, g.Desired = *ng.Scaling.Min, *ng.Scaling.Max, *ng.Scaling.Desired
		g.Cause = "a user request update of AutoScalingGroup constraints to min: " + wire.Decimal(g.Min) + ", max: " + wire.Decimal(g.Max) + ", desired: " + wire.Decimal(g.Desired) + "."
		r.asg.Touch(g)
	}
}

// mergedTaints returns the taints after adding and removing some. Key and effect identify a taint.
func mergedTaints(have, add, remove []taint) []taint {
	name := func(t taint) string { return t.Key + "\x00" + t.Effect }
	byName := map[string]taint{}
	for _, t := range have {
		byName[name(t)] = t
	}
	for _, t := range remove {
		delete(byName, name(t))
	}
	for _, t := range add {
		byName[name(t)] = t
	}
	var out []taint
	for _, key := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[key])
	}
	return out
}

// params returns the update's parameters: sizes as numbers, the others as JSON.
func (in *updateConfigInput) params() []updateParam {
	var out []updateParam
	number := func(kind string, n *int64) {
		if n != nil {
			out = append(out, updateParam{kind, wire.Decimal(*n)})
		}
	}
	object := func(kind string, v any) {
		if !reflect.ValueOf(v).IsZero() && reflect.ValueOf(v).Len() > 0 {
			text, err := json.Marshal(v)
			if err == nil {
				out = append(out, updateParam{kind, string(text)})
			}
		}
	}
	if in.Scaling != nil {
		number("MinSize", in.Scaling.Min)
		number("MaxSize", in.Scaling.Max)
		number("DesiredSize", in.Scaling.Desired)
	}
	object("LabelsToAdd", in.Labels.Set)
	object("LabelsToRemove", in.Labels.Remove)
	object("TaintsToAdd", in.Taints.Set)
	object("TaintsToRemove", in.Taints.Remove)
	if in.UpdateConfig != nil {
		number("MaxUnavailable", in.UpdateConfig.Max)
		number("MaxUnavailablePercentage", in.UpdateConfig.Percentage)
		if in.UpdateConfig.Strategy != "" {
			out = append(out, updateParam{"UpdateStrategy", in.UpdateConfig.Strategy})
		}
	}
	if in.Repair != nil && in.Repair.Enabled != nil {
		value := "false"
		if *in.Repair.Enabled {
			value = "true"
		}
		out = append(out, updateParam{"NodeRepairEnabled", value})
	}
	if in.WarmPool != nil {
		number("WarmPoolMinSize", in.WarmPool.Min)
		number("WarmPoolMaxGroupPreparedCapacity", in.WarmPool.MaxPrepared)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Type < out[j].Type })
	return out
}
