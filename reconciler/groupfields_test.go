package reconciler_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// groupSamples are values of members whose texts or numbers have a form that no row tells.
var groupSamples = map[string][2]any{
	"MaxInstanceLifetime": {int32(86400), int32(864000)}, "TerminationPolicies": {"OldestInstance", "NewestInstance"},
	"ServiceLinkedRoleARN": {serviceRole + "_a", serviceRole + "_b"},
}

const serviceRole = "arn:aws:iam::000000000000:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"

// withMember puts the n-th of two values of a member into settings, by its rows.
func withMember(s intent.GroupSettings, m *field.Member, n int) intent.GroupSettings {
	for _, r := range field.Rows(field.Group) {
		path := strings.Split(r.AWS, ".")
		if path[0] != m.AWS {
			continue
		}
		v := m.Of(&s)
		for _, name := range path[1:] {
			v = made(v).FieldByName(name)
		}
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			v = v.Index(0)
		}
		v = made(v)
		switch sample, known := groupSamples[r.AWS]; {
		case known:
			v.Set(reflect.ValueOf(sample[n]))
		case r.Values != "":
			v.SetString(strings.Split(r.Values, "|")[n])
		case v.Kind() == reflect.Bool:
			v.SetBool(n == 0)
		case v.Kind() == reflect.Int32:
			v.SetInt(int64(60 + n))
		default:
			v.SetString([]string{"one", "two"}[n])
		}
	}
	return s
}

// made is what a pointer points to, made anew, or the value.
func made(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// Every row of a group that is not special is sent at creation and comes back, is
// changed later, and is put right when somebody changes it by hand; in between nothing
// is left to do. The special ones have tests of their own.
func TestEveryRowOfAGroupIsHeld(t *testing.T) {
	t.Parallel()
	n := 0
	for _, m := range field.GroupMembers() {
		if m.Special || m.Call != field.UpdateGroup {
			continue
		}
		n++
		t.Run(m.AWS, func(t *testing.T) {
			w := newWorld(t)
			wish := func(n int) reconciler.Desired {
				p := groupPool("web", "m5.large", 1)
				p.Options = object("PoolOptions", "web")
				p.Group.GroupSettings = withMember(p.Group.GroupSettings, m, n)
				return target("blue", p)
			}
			w.settle(wish(0))
			w.restart()
			w.stillAndSilent(wish(0))

			steps := w.must(reconciler.PlanOnly, wish(1))[0].Plan.Steps
			if len(steps) != 1 || len(steps[0].Changes) != 1 || steps[0].Changes[0].Field != m.Field {
				t.Fatalf("one change of %s, got %+v", m.Field, steps)
			}
			w.settle(wish(1))
			w.stillAndSilent(wish(1))

			byHand := step.UpdateGroup{Name: "web", GroupSettings: withMember(intent.GroupSettings{}, m, 0)}
			w.check(newScope(w).Cloud.Execute(t.Context(), byHand))
			steps = w.must(reconciler.PlanOnly, wish(1))[0].Plan.Steps
			if !slices.ContainsFunc(steps, func(s step.Step) bool { return s.Changes[0].Field == m.Field }) {
				t.Errorf("no change of %s in %+v", m.Field, steps)
			}
			w.settle(wish(1))
			out, err := w.groups().DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"web"}})
			if err != nil || len(out.AutoScalingGroups) != 1 || aws.ToString(out.AutoScalingGroups[0].AutoScalingGroupName) != "web" {
				t.Fatal(out, err)
			}
			wanted := withMember(intent.GroupSettings{}, m, 1)
			got := reflect.ValueOf(out.AutoScalingGroups[0]).FieldByName(m.AWS)
			if want := m.Of(&wanted); !reflect.DeepEqual(compactOf(t, want.Interface()), compactOf(t, got.Interface())) {
				t.Errorf("%s is %v, want %v", m.AWS, got, want)
			}
		})
	}
	if n < 10 {
		t.Errorf("only %d rows", n)
	}
}

// compactOf is a value as JSON has it, by names in lower case.
func compactOf(t *testing.T, v any) any {
	t.Helper()
	var out any
	remarshal(t, v, &out)
	return lowered(compact(out))
}

func lowered(v any) any {
	in, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, item := range in {
		out[strings.ToLower(k)] = lowered(item)
	}
	return out
}
