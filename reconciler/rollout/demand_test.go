package rollout

import (
	"slices"
	"strings"
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
		"too few waves":                   {Demand{MinWaves: 4}, []Spec{spec("a", *all, 0, three...)}, "the FleetRollout default/a has 3 waves, and 4 are required"},
		"waves after one of everything":   {Demand{MinWaves: 3}, []Spec{spec("a", *all, 0, intent.Wave{Selector: all}, intent.Wave{Pools: 1}, intent.Wave{Pools: 1})}, "the FleetRollout default/a has 1 wave, and 3 are required"},
		"waves after every target":        {Demand{MinWaves: 2}, []Spec{spec("a", *all, 0, intent.Wave{Selector: &intent.PoolSelector{Targets: []string{"x", "*"}}}, intent.Wave{Pools: 1})}, "the FleetRollout default/a has 1 wave, and 2 are required"},
		"waves after a hundred per cent":  {Demand{MinWaves: 3}, []Spec{spec("a", *all, 0, intent.Wave{Selector: canary}, intent.Wave{Percent: 100}, intent.Wave{Pools: 1})}, "the FleetRollout default/a has 2 waves, and 3 are required"},
		"no bound":                        {Demand{MaxMachines: 5}, []Spec{spec("a", *all, 0, three...)}, "the FleetRollout default/a has no maxMachines, and 5 is the maximum"},
		"too wide a bound":                {Demand{MaxMachines: 5}, []Spec{spec("a", *all, 6, three...)}, "the FleetRollout default/a replaces up to 6 machines at a time, and 5 is the maximum"},
		"the bound":                       {Demand{MaxMachines: 5}, []Spec{spec("a", *all, 5, three...)}, ""},
		"one has the waves, one the most": {Demand{MinWaves: 3, MaxMachines: 5}, []Spec{spec("a", *all, 0, three...), spec("b", *all, 4)}, ""},
		"the bound is another pool's":     {Demand{MinWaves: 3, MaxMachines: 5}, []Spec{spec("a", *all, 0, three...), spec("b", *canary, 4)}, "the FleetRollout default/a has no maxMachines, and 5 is the maximum"},
		"of two, neither":                 {Demand{MinWaves: 4}, []Spec{spec("a", *all, 0, three...), spec("b", *all, 4)}, "the FleetRollout default/a or default/b has 3 waves, and 4 are required"},
	} {
		if got := c.demand.Unmet(ByName(c.specs), nil, pool); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOnlyWavesWithMachinesCount tries what somebody can do who may only merge commits: write
// waves that separate no machines.
func TestOnlyWavesWithMachinesCount(t *testing.T) {
	byTarget := func(names ...string) *intent.PoolSelector { return &intent.PoolSelector{Targets: names} }
	pool := func(target, name string, machines int32) Pool {
		return Pool{ID: ID{Target: target, Pool: "default/" + name}, Namespace: "default", Machines: machines}
	}
	a, b, c := pool("prod", "a", 10), pool("prod", "b", 10), pool("prod", "c", 10)
	kept, done, whole := b, b, b
	kept.Keeps, done.New, whole.Whole = true, 10, true
	nothing := intent.Wave{Selector: byTarget("nowhere")}
	for name, tc := range map[string]struct {
		waves []intent.Wave
		pools []Pool
		want  string // part of what is lacking; empty for nothing
	}{
		"three waves":                        {[]intent.Wave{{Pools: 1}, {Pools: 1}}, []Pool{a, b, c}, ""},
		"two that select nothing":            {[]intent.Wave{nothing, nothing, {Percent: 100}}, []Pool{a, b}, "has 1 wave with machines of this change (wave 3), and 3 are required; no counted machine is in wave 1, wave 2"},
		"one and two per cent of two":        {[]intent.Wave{{Percent: 1}, {Percent: 2}, {Percent: 100}}, []Pool{a, b}, "has 1 wave with machines"},
		"one selector twice":                 {[]intent.Wave{{Selector: byTarget("prod")}, {Selector: byTarget("prod")}, {Selector: byTarget("p*")}}, []Pool{a, b, c}, "has 1 wave with machines"},
		"one name":                           {[]intent.Wave{{Name: "x", Selector: byTarget("nowhere")}, {Name: "x", Selector: byTarget("prod")}}, []Pool{a, b, c}, "has 1 wave with machines of this change (x)"},
		"pools without machines":             {[]intent.Wave{{Pools: 1}, {Pools: 1}}, []Pool{pool("prod", "a", 0), pool("prod", "b", 0), c}, "has 1 wave with machines"},
		"pools whose machines stay":          {[]intent.Wave{{Pools: 1}, {Pools: 1}}, []Pool{a, kept, c}, "has 2 waves with machines"},
		"pools with nothing left to replace": {[]intent.Wave{{Pools: 1}, {Pools: 1}}, []Pool{a, done, c}, "has 2 waves with machines"},
		"pools of a target without demand":   {[]intent.Wave{{Selector: byTarget("dev")}, {Selector: byTarget("dev2")}}, []Pool{pool("dev", "x", 1), pool("dev2", "x", 1), a, b}, "has 1 wave with machines of this change (rest)"},
		"targets that demand waves as well":  {[]intent.Wave{{Selector: byTarget("prod")}, {Selector: byTarget("prod2")}}, []Pool{a, pool("prod2", "x", 3), pool("prod3", "x", 3)}, ""},
		"one pool":                           {[]intent.Wave{{Pools: 1}, {Pools: 1}}, []Pool{a}, "the change is of 1 pool, so the shares of its waves count too, in total 1 step: write more shares"},
		"one pool by shares":                 {[]intent.Wave{{Pools: 1, Shares: []int32{10, 50}}, {Pools: 1}}, []Pool{a}, ""},
		"shares that round to one machine":   {[]intent.Wave{{Pools: 1, Shares: []int32{1, 2, 100}}}, []Pool{a}, "in total 2 steps"},
		"two pools at once, by shares":       {[]intent.Wave{{Percent: 100, Shares: []int32{10, 50, 100}}}, []Pool{a, b}, "has 1 wave with machines"},
		"one machine":                        {[]intent.Wave{{Pools: 1}}, []Pool{pool("prod", "a", 1)}, ""},
		"one nodegroup":                      {[]intent.Wave{{Pools: 1}}, []Pool{whole}, ""},
		"a nodegroup has no shares":          {[]intent.Wave{{Pools: 2, Shares: []int32{10, 50, 100}}}, []Pool{a, whole}, "has 1 wave with machines"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Demand{MinWaves: 3, Counts: map[string]bool{"prod": true, "prod2": true, "prod3": true}}
			s := Spec{FleetRollout: intent.FleetRollout{Waves: tc.waves}}
			foreseen := d.UnmetPlaced("default/nodes", s, s.Foresee(tc.pools))
			if tc.want == "" && foreseen != "" || !strings.Contains(foreseen, tc.want) {
				t.Errorf("%q, want %q", foreseen, tc.want)
			}

			// The same from the record, once the members of a run are fixed.
			f := newFleet(t, s, 0)
			f.in.Pools = tc.pools
			for i := range f.in.Pools {
				f.in.Pools[i].Hash, f.in.Pools[i].Pending, f.in.Pools[i].Revision = "new", true, "c0"
			}
			now := f.in.Now
			fresh := map[string]time.Time{}
			for _, p := range tc.pools {
				fresh[p.Target] = now
			}
			f.nextKnown(0, fresh)
			f.nextKnown(0, fresh)
			if r := f.record.Runs[0]; !r.Active() || r.Gathers {
				t.Fatalf("the members are not fixed: %+v", r)
			}
			g := NewGovernor(&f.record, f.in.Specs)
			permits := map[string]Permit{}
			for _, p := range f.record.Permits {
				if p.Target == "prod" {
					permits[p.Pool] = p
				}
			}
			unmet := g.Unmet(d, "prod", permits)
			for pool := range permits {
				if got := unmet[pool]; (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
					t.Errorf("%s: %q, want %q", pool, got, tc.want)
				}
			}
		})
	}
}

// TestWavesThatCanHoldNoPool are known before anything is counted.
func TestWavesThatCanHoldNoPool(t *testing.T) {
	pools := []Pool{{ID: ID{"prod", "default/a"}}, {ID: ID{"prod", "default/b"}}}
	prod := &intent.PoolSelector{Targets: []string{"prod"}}
	for name, c := range map[string]struct {
		waves []intent.Wave
		want  []bool
	}{
		"a selector of nothing":    {[]intent.Wave{{Selector: &intent.PoolSelector{Targets: []string{"x"}}}, {Pools: 1}}, []bool{false, true}},
		"none is left":             {[]intent.Wave{{Pools: 2}, {Percent: 50}}, []bool{true, false}},
		"a selector takes all":     {[]intent.Wave{{Pools: 1}, {Selector: prod}}, []bool{false, true}},
		"a percentage may hold it": {[]intent.Wave{{Percent: 1}, {Percent: 2}, {Percent: 3}}, []bool{true, true, false}},
	} {
		s := Spec{FleetRollout: intent.FleetRollout{Waves: c.waves}}
		got := s.Filled(pools)
		if !slices.Equal(got.Waves, c.want) || got.Pools != 2 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		specs, filled := map[string]Spec{"default/nodes": s}, map[string]Filled{"default/nodes": got}
		lacks := Demand{MinWaves: 2}.Unmet(specs, filled, pools[0])
		if few := len(slices.DeleteFunc(slices.Clone(c.want), func(is bool) bool { return !is })) < 2; few != strings.Contains(lacks, "has 1 wave, and 2 are required; no pool that counts can be in wave ") {
			t.Errorf("%s: %q", name, lacks)
		}
		if lacks := (Demand{MinWaves: 3}).Unmet(specs, filled, pools[0]); len(c.waves) == 3 && lacks != "" {
			t.Errorf("%s: of fewer pools than waves shares decide: %q", name, lacks)
		}
	}
}

// TestSeveralFleetRolloutsShareABound: each counts its own machines alone.
func TestSeveralFleetRolloutsShareABound(t *testing.T) {
	spec := func(name string, most int32, tier string) Spec {
		s := Spec{FleetRollout: intent.FleetRollout{Key: intent.Key{Namespace: "default", Name: name}, MaxMachines: most}}
		if tier != "" {
			s.Selector.Labels = map[string]string{"tier": tier}
		}
		return s
	}
	pools := []Pool{{ID: ID{"prod", "default/a"}, Labels: map[string]string{"tier": "a"}}, {ID: ID{"prod", "default/b"}, Labels: map[string]string{"tier": "b"}}}
	for name, c := range map[string]struct {
		specs []Spec
		want  string
	}{
		"one for all":               {[]Spec{spec("all", 50, "")}, ""},
		"one for each":              {[]Spec{spec("one", 50, "a"), spec("two", 50, "b")}, "the FleetRollouts default/one and default/two count only their own machines, and replace up to 100 at a time in total, and 50 is the maximum"},
		"one for each, half of it":  {[]Spec{spec("one", 25, "a"), spec("two", 25, "b")}, ""},
		"one for each, one for all": {[]Spec{spec("one", 50, "a"), spec("two", 50, "b"), spec("all", 50, "")}, ""},
	} {
		if got := (Demand{MaxMachines: 50}).UnmetTogether(ByName(c.specs), pools); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
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
