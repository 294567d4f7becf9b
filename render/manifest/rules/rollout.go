package rules

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// checkFleetRollout applies weir's own rules for waves and gates. Every wave and gate must have exactly one
// condition, and the condition must be possible.
func checkFleetRollout(o *kinds.Decoded[kinds.FleetRolloutSpec], r kinds.Reporter) {
	s := &o.Spec
	if s.BakeTime < 0 {
		r.Error(path("spec", "bakeTime"), "out-of-range", "spec.bakeTime is below 0", "")
	}
	checkSelector(r, path("spec", "selector"), s.Selector)
	names, percent := map[string]int{}, int32(0)
	for i := range s.Waves {
		w, at := &s.Waves[i], path("spec", "waves", intent.Index(i))
		if first, taken := names[w.Name]; taken && w.Name != "" {
			r.To.Add(kinds.Fault{Code: "duplicate", Summary: fmt.Sprintf("two waves have the name %s", w.Name), Ref: r.Ref, Path: at.Join("name"),
				Related: []kinds.RelatedField{{Ref: r.Ref, Path: path("spec", "waves", intent.Index(first), "name"), Message: "the other one"}}})
		}
		names[w.Name] = i
		checkWave(r, at, w)
		if w.Percent > 0 && w.Percent <= percent {
			r.Error(at.Join("percent"), "out-of-range", fmt.Sprintf("%s is %d, not more than the %d of a wave before", at.Join("percent"), w.Percent, percent), "percentages are of all machines, and include those of earlier waves")
		}
		percent = max(percent, w.Percent)
	}
	gates := map[string]int{}
	for i := range s.Gates {
		g, at := &s.Gates[i], path("spec", "gates", intent.Index(i))
		if first, taken := gates[g.Name]; taken && g.Name != "" {
			r.To.Add(kinds.Fault{Code: "duplicate", Summary: fmt.Sprintf("two gates have the name %s", g.Name), Ref: r.Ref, Path: at.Join("name"),
				Related: []kinds.RelatedField{{Ref: r.Ref, Path: path("spec", "gates", intent.Index(first), "name"), Message: "the other one"}}})
		}
		gates[g.Name] = i
		checkGate(r, at, g)
	}
}

// oneOf reports a fault unless exactly one of the fields is written.
func oneOf(r kinds.Reporter, at intent.Path, fields []string, written ...bool) {
	var are []string
	for i, is := range written {
		if is {
			are = append(are, fields[i])
		}
	}
	switch all := strings.Join(fields[:len(fields)-1], ", ") + " or " + fields[len(fields)-1]; len(are) {
	case 0:
		r.Error(at, "incomplete", at.String()+" has none of "+all, "write one of them")
	case 1:
	default:
		r.Error(at.Join(are[1]), "exclusive", at.Join(are[1]).String()+" excludes "+are[0], "write one of "+all)
	}
}

// checkWave checks one wave of a FleetRollout: how it selects pools, its bake time, and that its shares
// grow up to 100.
func checkWave(r kinds.Reporter, at intent.Path, w *intent.Wave) {
	oneOf(r, at, []string{"selector", "pools", "percent"}, w.Selector != nil, w.Pools != 0, w.Percent != 0)
	if w.Selector != nil {
		checkSelector(r, at.Join("selector"), *w.Selector)
	}
	if w.BakeTime != nil && *w.BakeTime < 0 {
		r.Error(at.Join("bakeTime"), "out-of-range", at.Join("bakeTime").String()+" is below 0", "")
	}
	before := int32(0)
	for i, share := range w.Shares {
		p := at.Join("shares", intent.Index(i))
		switch {
		case share < 1 || share > 100:
			r.Error(p, "out-of-range", fmt.Sprintf("%s is %d, it must be from 1 to 100", p, share), "it is a percentage of the machines of each pool")
		case share <= before:
			r.Error(p, "out-of-range", fmt.Sprintf("%s is %d, not more than the %d before it", p, share, before), "shares grow, and those before are part of them")
		}
		before = share
	}
	if n := len(w.Shares); n > 0 && w.Shares[n-1] != 100 {
		p := at.Join("shares", intent.Index(n-1))
		r.Error(p, "incomplete", p.String()+", the last one, is not 100", "a pool that is rolled is rolled as a whole at the end: add 100")
	}
}

// checkSelector refuses an empty string, which would select nothing.
func checkSelector(r kinds.Reporter, at intent.Path, s intent.PoolSelector) {
	for field, list := range map[string][]string{"targets": s.Targets, "namespaces": s.Namespaces} {
		for i, text := range list {
			if p := at.Join(field, intent.Index(i)); text == "" {
				r.Error(p, "bad-value", p.String()+" is empty", "write a name, or leave the entry out")
			}
		}
	}
}

// checkGate checks one gate of a FleetRollout: it has exactly one kind, with the values that the kind
// needs.
func checkGate(r kinds.Reporter, at intent.Path, g *intent.RolloutGate) {
	oneOf(r, at, []string{"nodesReady", "failedActivities", "cloudWatchAlarms", "prometheus"}, g.NodesReady != nil, g.FailedActivities != nil, g.CloudWatchAlarms != nil, g.Prometheus != nil)
	if n := g.NodesReady; n != nil && n.Within <= 0 {
		p := at.Join("nodesReady", "within")
		r.Error(p, "out-of-range", p.String()+" must be more than 0", "write how long a machine may take from its launch until its node is ready, such as 10m")
	}
	if a := g.CloudWatchAlarms; a != nil && len(a.Alarms) == 0 {
		p := at.Join("cloudWatchAlarms", "alarms")
		r.Error(p, "incomplete", p.String()+" names no alarm", "write the names of alarms in the pools' accounts and regions")
	}
	if q := g.Prometheus; q != nil {
		p := at.Join("prometheus")
		switch {
		case q.Min == nil && q.Max == nil:
			r.Error(p, "incomplete", p.String()+" has neither min nor max", "write the range in which the query's values are good")
		case q.Min != nil && q.Max != nil && *q.Min > *q.Max:
			r.Error(p.Join("min"), "mismatch", fmt.Sprintf("%s is above max", p.Join("min")), "no value is within")
		}
	}
}
