package reconciler_test

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// withNodegroupRow puts the n-th of two values of a row into settings, and beside it what
// EKS wants to see with it.
func withNodegroupRow(s intent.NodegroupSettings, r *field.Row, n int) intent.NodegroupSettings {
	yes := true
	path := strings.Split(cmp.Or(r.Member, r.AWS), ".")
	switch path[0] {
	case "RepairOptions":
		s.NodeRepair = &yes
	case "WarmPool":
		s.WarmPool = &intent.NodegroupWarmPool{Enabled: &yes}
	case "UpdateConfig":
		if path[1] == "MaxUnavailablePercentage" {
			s.UpdateConfig.MaxUnavailable = 0 // the one excludes the other
		}
	}
	v := reflect.ValueOf(&s).Elem()
	for _, name := range path {
		v = made(v).FieldByName(name)
	}
	switch v = made(v); {
	case r.Values != "":
		v.SetString(strings.Split(r.Values, "|")[n])
	case v.Kind() == reflect.Bool:
		v.SetBool(n == 0)
	case v.Kind() == reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"tier": []string{"one", "two"}[n]}))
	default:
		v.SetInt(int64(2 + n))
	}
	return s
}

// Every row of a nodegroup that EKS changes by UpdateNodegroupConfig is set at creation,
// comes back, is changed later, and is put right when somebody changes it by hand. Rows
// of list items, versions and what makes a new nodegroup have tests of their own.
func TestEveryRowOfANodegroupIsHeld(t *testing.T) {
	rows := 0
	for _, r := range field.Rows(field.Nodegroup) {
		if r.Replaces || strings.Contains(r.AWS, "[]") || r.Call() != "UpdateNodegroupConfig" {
			continue
		}
		rows++
		t.Run(r.AWS, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			wish := func(n int) reconciler.Desired {
				p := nodegroupPool("ng", 1)
				p.Options = object("PoolOptions", "ng")
				p.Nodegroup.NodegroupSettings = withNodegroupRow(p.Nodegroup.NodegroupSettings, r, n)
				p.Nodegroup.MaxSize = intent.Number{Value: 5, Written: true}
				return target("blue", groupPool("web", "m5.large", 1), p)
			}
			w.settle(wish(0))
			w.restart()
			w.stillAndSilent(wish(0))

			name, _, _ := strings.Cut(r.AWS, ".")
			changed := func(when string) {
				t.Helper()
				steps := w.must(reconciler.PlanOnly, wish(1))[0].Plan.Steps
				if len(steps) != 1 || !slices.ContainsFunc(steps[0].Changes, func(c step.Change) bool { return strings.Contains(c.Field, field.Key(name)) }) {
					t.Fatalf("%s: no change of %s in %+v", when, r.AWS, steps)
				}
			}
			changed("changed in Git")
			w.settle(wish(1))
			w.stillAndSilent(wish(1))

			by := step.UpdateNodegroupConfig{NodegroupName: observed.NodegroupName{Cluster: "demo", Name: "ng"}}
			settings := withNodegroupRow(nodegroupPool("ng", 1).Nodegroup.NodegroupSettings, r, 0)
			if r.AWS == "Labels" {
				by.PutLabels = settings.Labels
			} else {
				member, _, _ := strings.Cut(cmp.Or(r.Member, r.AWS), ".")
				reflect.ValueOf(&by.Settings).Elem().FieldByName(member).Set(reflect.ValueOf(settings).FieldByName(member))
				by.Settings.NodeRepair = settings.NodeRepair
			}
			w.check(newScope(w).Cloud.Execute(t.Context(), by))
			w.clock.Advance(time.Hour)
			changed("changed by hand")
			w.settle(wish(1))
			w.stillAndSilent(wish(1))
		})
	}
	if rows < 12 {
		t.Errorf("only %d rows", rows)
	}
}
