package rollout

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

func TestWhatADemandLacks(t *testing.T) {
	all := &intent.PoolSelector{}
	canary := &intent.PoolSelector{Targets: []string{"canary"}}
	spec := func(name string, selector intent.PoolSelector, most int32, waves ...intent.Wave) Spec {
		return Spec{FleetRollout: intent.FleetRollout{Key: intent.Key{Namespace: "default", Name: name}, Selector: selector, MaxMachines: most, Waves: waves}}
	}
	pool := Pool{ID: ID{Target: "prod", Pool: "default/web"}, Namespace: "default", Labels: map[string]string{"tier": "web"}}
	three := []intent.Wave{{Pools: 1}, {Percent: 5}, {Percent: 25}}
	for name, c := range map[string]struct {
		demand Demand
		specs  []Spec
		want   string
	}{
		"none":                            {Demand{}, nil, "no FleetRollout of the source selects the pool"},
		"one of others":                   {Demand{}, []Spec{spec("a", *canary, 1, three...)}, "no FleetRollout of the source selects the pool"},
		"one":                             {Demand{}, []Spec{spec("a", *all, 0)}, ""},
		"waves enough":                    {Demand{MinWaves: 3}, []Spec{spec("a", *all, 0, three...)}, ""},
		"too few waves":                   {Demand{MinWaves: 4}, []Spec{spec("a", *all, 0, three...)}, "the FleetRollout default/a has 3 waves, and 4 are the least"},
		"waves after one of everything":   {Demand{MinWaves: 3}, []Spec{spec("a", *all, 0, intent.Wave{Selector: all}, intent.Wave{Pools: 1}, intent.Wave{Pools: 1})}, "the FleetRollout default/a has 1 wave, and 3 are the least"},
		"waves after every target":        {Demand{MinWaves: 2}, []Spec{spec("a", *all, 0, intent.Wave{Selector: &intent.PoolSelector{Targets: []string{"x", "*"}}}, intent.Wave{Pools: 1})}, "the FleetRollout default/a has 1 wave, and 2 are the least"},
		"waves after a hundred per cent":  {Demand{MinWaves: 3}, []Spec{spec("a", *all, 0, intent.Wave{Selector: canary}, intent.Wave{Percent: 100}, intent.Wave{Pools: 1})}, "the FleetRollout default/a has 2 waves, and 3 are the least"},
		"no bound":                        {Demand{MaxMachines: 5}, []Spec{spec("a", *all, 0, three...)}, "the FleetRollout default/a has no maxMachines, and 5 is the most"},
		"too wide a bound":                {Demand{MaxMachines: 5}, []Spec{spec("a", *all, 6, three...)}, "the FleetRollout default/a replaces up to 6 machines at a time, and 5 is the most"},
		"the bound":                       {Demand{MaxMachines: 5}, []Spec{spec("a", *all, 5, three...)}, ""},
		"one has the waves, one the most": {Demand{MinWaves: 3, MaxMachines: 5}, []Spec{spec("a", *all, 0, three...), spec("b", *all, 4)}, ""},
		"the bound is another pool's":     {Demand{MinWaves: 3, MaxMachines: 5}, []Spec{spec("a", *all, 0, three...), spec("b", *canary, 4)}, "the FleetRollout default/a has no maxMachines, and 5 is the most"},
		"of two, neither":                 {Demand{MinWaves: 4}, []Spec{spec("a", *all, 0, three...), spec("b", *all, 4)}, "the FleetRollout default/a or default/b has 3 waves, and 4 are the least"},
	} {
		if got := c.demand.Lacks(Names(c.specs), pool); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAWaveSaysWhatHoldsItsPools: a pool that may roll and is held by something else.
func TestAWaveSaysWhatHoldsItsPools(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	in := Input{Revision: "c1", Now: now, Specs: []Spec{{FleetRollout: intent.FleetRollout{Key: intent.Key{Namespace: "default", Name: "nodes"}}, Target: "prod"}},
		Pools: []Pool{{ID: ID{Target: "prod", Pool: "default/web"}, Namespace: "default", Revision: "c1", Hash: "new", Machines: 3, Pending: true, Held: "window: opens on Monday"}}, Fresh: map[string]time.Time{"prod": now}}
	out := Next(Next(Record{}, in).Record, in)
	if len(out.Record.Runs) != 1 || out.Record.Runs[0].Wait != "rest: 1 pool of it must roll; prod default/web is held (window: opens on Monday)" {
		t.Errorf("%+v", out.Record.Runs)
	}
}
