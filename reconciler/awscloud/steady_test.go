package awscloud_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
	"golang.org/x/sync/errgroup"
)

// populate makes n pools: a template and a group with one instance each.
func (e *env) populate(n int) {
	e.t.Helper()
	data, subnets := e.data(), e.subnets()
	var g errgroup.Group
	g.SetLimit(8)
	for i := range n {
		g.Go(func() error {
			name := fmt.Sprintf("pool-%05d", i)
			res, err := e.cloud.Execute(e.t.Context(), step.CreateLaunchTemplate{Name: name, Description: "d", Data: data, Tags: tags(name)})
			if err != nil {
				return err
			}
			_, err = e.cloud.Execute(e.t.Context(), step.CreateGroup{Group: observed.Group{
				Name: name, MinSize: 1, MaxSize: 3, DesiredCapacity: 1, SubnetIDs: subnets, GroupSettings: intent.GroupSettings{DefaultCooldown: new(int32(300)), DefaultInstanceWarmup: new(int32(300))},
				Template: res.Template, Tags: groupTags(name),
			}})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		e.t.Fatal(err)
	}
}

// allVersions asks for the newest version of each template.
func allVersions(s observed.State) observed.Needs {
	var n observed.Needs
	for _, t := range s.Templates {
		n.Versions = append(n.Versions, observed.TemplateRef{ID: t.ID, Name: t.Name, Version: fmt.Sprint(t.LatestVersion)})
	}
	return n
}

func TestSteadyPassCallCount(t *testing.T) {
	tests := []struct{ pools, groupCalls, templateCalls int }{{0, 1, 1}, {1, 1, 1}, {100, 1, 1}, {101, 2, 1}, {201, 3, 2}}
	e := start(t)
	made := 0
	for _, tt := range tests {
		for ; made < tt.pools; made++ {
			name := fmt.Sprintf("pool-%05d", made)
			res := e.do(step.CreateLaunchTemplate{Name: name, Description: "d", Data: e.data(), Tags: tags(name)})
			e.do(step.CreateGroup{Group: observed.Group{Name: name, MaxSize: 3, SubnetIDs: e.subnets(), Template: res.Template, Tags: groupTags(name)}})
		}
		s := e.observe(query())
		e.fill(s, allVersions(s))
		calls := e.counted(func() { s = e.observe(query()) })
		want := map[string]int{"autoscaling:DescribeAutoScalingGroups": tt.groupCalls, "ec2:DescribeLaunchTemplates": tt.templateCalls}
		if d := cmp.Diff(want, calls); d != "" {
			t.Errorf("%d pools: calls (-want +got):\n%s", tt.pools, d)
		}
		if len(s.Groups) != tt.pools || len(s.Templates) != tt.pools {
			t.Errorf("%d pools: observed %d groups and %d templates", tt.pools, len(s.Groups), len(s.Templates))
		}
		for name, tpl := range s.Templates {
			if tpl.Versions[1].Data.InstanceType != "m5.large" {
				t.Fatalf("template %s came without its known version: %+v", name, tpl)
			}
		}
	}
}

func BenchmarkSteadyPass(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := start(b)
			e.populate(n)
			e.clock.Advance(1e9)
			s := e.observe(query())
			e.fill(s, allVersions(s))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if s = e.observe(query()); len(s.Groups) != n {
					b.Fatal(len(s.Groups))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/pool")
		})
	}
}
