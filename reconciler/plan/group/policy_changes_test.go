package group

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/intent"
)

func policyOf(types ...string) *intent.MixedInstances {
	m := usualPolicy
	for _, t := range types {
		m.Overrides = append(m.Overrides, intent.Override{InstanceType: t})
	}
	return &m
}

func TestPolicyChanges(t *testing.T) {
	weighted := policyOf("a.large", "b.large")
	weighted.Overrides[1].WeightedCapacity = "2"
	spot := policyOf("a.large", "b.large")
	spot.OnDemandPercentageAboveBaseCapacity, spot.SpotMaxPrice = 0, "0.1"
	for _, tt := range []struct {
		name     string
		from, to *intent.MixedInstances
		want     []string
	}{
		{"same", policyOf("a.large"), policyOf("a.large"), nil},
		{"none", nil, nil, nil},
		{"one more", policyOf("a.large", "b.large"), policyOf("a.large", "b.large", "c.large"), []string{"overrides[2] <nil> c.large"}},
		{"one more before the others", policyOf("a.large", "b.large"), policyOf("c.large", "a.large", "b.large"), []string{"overrides[0] <nil> c.large"}},
		{"one less", policyOf("a.large", "b.large", "c.large"), policyOf("a.large", "c.large"), []string{"overrides[1] b.large <nil>"}},
		{"another", policyOf("a.large", "b.large"), policyOf("a.large", "c.large"), []string{"overrides[1] b.large <nil>", "overrides[1] <nil> c.large"}},
		{"another order", policyOf("a.large", "b.large"), policyOf("b.large", "a.large"), []string{"overrides [a.large b.large] [b.large a.large]"}},
		{"weights", policyOf("a.large", "b.large"), weighted, []string{"overrides[1] b.large map[instanceType:b.large weightedCapacity:2]"}},
		{"distribution", policyOf("a.large", "b.large"), spot, []string{"instancesDistribution.onDemandPercentageAboveBaseCapacity 100 0", "options instancesDistribution.spotMaxPrice <nil> 0.1"}},
		{"new", nil, spot, []string{"instancesDistribution.onDemandPercentageAboveBaseCapacity <nil> 0", "options instancesDistribution.spotMaxPrice <nil> 0.1", "overrides[0] <nil> a.large", "overrides[1] <nil> b.large"}},
		{"gone", policyOf("a.large"), nil, []string{" map[onDemandAllocationStrategy:prioritized onDemandBaseCapacity:0 onDemandPercentageAboveBaseCapacity:100 overrides:[map[instanceType:a.large]] spotAllocationStrategy:lowest-price] <nil>"}},
		{"new and usual", nil, policyOf(), []string{" <nil> map[onDemandAllocationStrategy:prioritized onDemandBaseCapacity:0 onDemandPercentageAboveBaseCapacity:100 spotAllocationStrategy:lowest-price]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool := &intent.Pool{Infrastructure: intent.ObjectRef{Name: "infra"}, Options: intent.ObjectRef{Name: "options"}}
			var got []string
			for _, ch := range policyChanges(pool, tt.from, tt.to) {
				field := strings.TrimPrefix(strings.TrimPrefix(ch.Field, "mixedInstancesPolicy"), ".")
				text := fmt.Sprintf("%s %v %v", field, ch.From, ch.To)
				below := "spec."
				if ch.Object == pool.Options {
					text, below = "options "+text, "spec.autoScalingGroup."
				}
				if ch.Path.String() != below+ch.Field {
					t.Errorf("%s is at %s", ch.Field, ch.Path)
				}
				got = append(got, text)
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// The digest of a plan is made of its changes: two policies that differ must not
// look alike beside a third.
func TestPolicyChangesTellPoliciesApart(t *testing.T) {
	policy := rapid.Custom(func(t *rapid.T) *intent.MixedInstances {
		if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
			return nil
		}
		m := policyOf(rapid.SliceOfN(rapid.SampledFrom([]string{"a.large", "b.large", "c.large", ""}), 0, 4).Draw(t, "types")...)
		for i := range m.Overrides {
			m.Overrides[i].WeightedCapacity = rapid.SampledFrom([]string{"", "", "2"}).Draw(t, "weight")
		}
		m.OnDemandBaseCapacity = rapid.Int32Range(0, 1).Draw(t, "base")
		m.OnDemandPercentageAboveBaseCapacity = rapid.SampledFrom([]int32{0, 100}).Draw(t, "percentage")
		m.SpotMaxPrice = rapid.SampledFrom([]string{"", "0.1"}).Draw(t, "price")
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		from, a, b := policy.Draw(t, "from"), policy.Draw(t, "a"), policy.Draw(t, "b")
		ca, cb := policyChanges(&intent.Pool{}, from, a), policyChanges(&intent.Pool{}, from, b)
		if alike := fmt.Sprint(ca) == fmt.Sprint(cb); alike != a.Same(b) {
			t.Fatalf("%v\n%v", ca, cb)
		}
		if (len(ca) == 0) != from.Same(a) {
			t.Fatalf("the changes are %v", ca)
		}
	})
}
