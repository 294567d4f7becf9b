package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// A member of a pool is reached by the positions of fields; pointers and lists are
// entered on the way, and a map is entered at one of these keys.
type member struct {
	path  string
	steps []int
}

var testKeys = []string{"cost", "Name", "kubernetes.io/cluster/c", "kubernetes.io/cluster/other", "sigs.k8s.io/cluster-api-provider-aws/cluster/other", "sigs.k8s.io/cluster-api-provider-aws/role"}

// membersOf lists everything that a manifest can set of a pool.
func membersOf(t reflect.Type, at member) []member {
	var out []member
	switch t {
	case reflect.TypeFor[intent.Lookup](), reflect.TypeFor[intent.ObjectRef](), reflect.TypeFor[intent.Key](), reflect.TypeFor[diag.List](),
		reflect.TypeFor[intent.LaunchConfig](), reflect.TypeFor[intent.ForeignTemplate]():
		return nil // what it is and where it comes from, not what is sent
	}
	below := func(name string, i int) member {
		return member{at.path + name, append(append([]int(nil), at.steps...), i)}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return membersOf(t.Elem(), at)
	case reflect.Struct:
		for i := range t.NumField() {
			name := "." + t.Field(i).Name
			if t.Field(i).Anonymous {
				name = "" // its members are the outer one's
			}
			out = append(out, membersOf(t.Field(i).Type, below(name, i))...)
		}
		return out
	case reflect.Map:
		for i, key := range testKeys {
			out = append(out, below("["+key+"]", i))
		}
		return out
	}
	return []member{at}
}

// setMember gives the member its n-th value.
func setMember(v reflect.Value, steps []int, n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		setMember(v.Elem(), steps, n)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		setMember(v.Index(0), steps, n)
	case reflect.Struct:
		setMember(v.Field(steps[0]), steps[1:], n)
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		v.SetMapIndex(reflect.ValueOf(testKeys[steps[0]]), reflect.ValueOf(fmt.Sprint("value", n)))
	case reflect.String:
		v.SetString(fmt.Sprint("text", n))
	case reflect.Bool:
		v.SetBool(n%2 == 1)
	case reflect.Float64:
		v.SetFloat(float64(100 + n))
	default:
		v.SetInt(int64(100 + n))
	}
}

// together are members that count only beside others, which are then set too.
var together = map[string]string{
	".Nodegroup.WarmPool.MaxGroupPreparedCapacity": ".Nodegroup.WarmPool.Enabled", ".Nodegroup.WarmPool.MinSize": ".Nodegroup.WarmPool.Enabled",
	".Nodegroup.WarmPool.PoolState": ".Nodegroup.WarmPool.Enabled", ".Nodegroup.WarmPool.ReuseOnScaleIn": ".Nodegroup.WarmPool.Enabled",
	".Nodegroup.RemoteAccess.SourceSecurityGroups": ".Nodegroup.RemoteAccess.EC2SSHKey",
}

// untold says why members may change what a step sends and none of its changes.
var untold = map[string]string{
	".LaunchTemplate.Name":                                             "it follows from the pool's name",
	".LaunchTemplate.Data.TagSpecifications.ResourceType":              "manifests tag instances and volumes alike, which is told once",
	".LaunchTemplate.Data.BlockDeviceMappings.Ebs.DeleteOnTermination": "it is always true",
	".Nodegroup.NodeRepair":                                            "a replacement without it has none, as one with false",
	".Nodegroup.WarmPool.Enabled":                                      "likewise",
	".Nodegroup.WarmPool.ReuseOnScaleIn":                               "likewise",
}

// sends is what a step asks of AWS, without what only guards the request against
// being done twice or is a note.
func sends(t *testing.T, s step.Step) string {
	t.Helper()
	raw, err := json.Marshal(s.Do)
	var out map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	delete(out, "Token")
	delete(out, "Description")
	return fmt.Sprintf("%T %s", s.Do, content.Canonical(out))
}

func tells(t *testing.T, s step.Step) string {
	t.Helper()
	raw, err := json.Marshal(s.Changes)
	if err != nil {
		t.Fatal(err)
	}
	return (&Plan{Steps: []step.Step{s}}).Digest() + " " + string(raw)
}

// hidden finds the step that asks of AWS in two plans for different things and is
// told in the same way.
func hidden(t *testing.T, one, other *Plan) (a, b step.Step, found bool) {
	t.Helper()
	if len(one.Steps) != len(other.Steps) {
		return a, b, false
	}
	for i := range one.Steps {
		if a, b = one.Steps[i], other.Steps[i]; !reflect.DeepEqual(a.Do, b.Do) && sends(t, a) != sends(t, b) && tells(t, a) == tells(t, b) {
			return a, b, true
		}
	}
	return a, b, false
}

// madeFor is AWS with what the first pass over a pool makes.
func madeFor(t *testing.T, pool intent.Pool) *fakeAWS {
	t.Helper()
	m := newModel()
	p, _ := m.pass(t, clusterInput(pool, groupPool("other", "m5.large", 1)))
	made := step.Made{}
	for _, s := range p.Steps {
		switch s.Do.(type) {
		case step.CreateLaunchTemplate, step.CreateGroup, step.CreateNodegroup:
			m.do(step.WithTemplate(s.Do, made), made)
		}
	}
	return m
}

func clusterInput(pools ...intent.Pool) model.Input {
	in := testInput(pools...)
	in.Set.Clusters = []intent.Cluster{{Key: intent.Key{Namespace: "default", Name: "c"}, TagName: "c"}}
	return in
}

// A step's changes, and so the digest, hold all that the step sends: an approval covers the whole plan, and weir retries a pool that AWS refused once
// Git has changed the refused value. The test changes every member of a pool by itself, in every kind of plan.
func TestTheDigestCoversWhatIsSent(t *testing.T) {
	group := func() intent.Pool { return groupPool("web", "m5.large", 3) }
	larger := func() intent.Pool { return groupPool("web", "m5.xlarge", 3) }
	nodegroup := func() intent.Pool {
		n := nodegroupPool("ng", 2)
		n.ClusterKey = intent.Key{Namespace: "default", Name: "c"}
		return n
	}
	spot := func() intent.Pool {
		n := nodegroup()
		n.AllowReplace, n.Nodegroup.CapacityType = true, "SPOT"
		return n
	}
	launched := func() intent.Pool {
		n := nodegroup()
		n.LaunchTemplate = group().LaunchTemplate
		return n
	}
	released := func() intent.Pool {
		n := nodegroup()
		n.Nodegroup.ReleaseVersion = "1.33.0-20260101"
		return n
	}
	whole := func(make func() intent.Pool) func() intent.Pool {
		return func() intent.Pool {
			p := make()
			for _, m := range membersOf(reflect.TypeFor[intent.Pool](), member{}) {
				switch m.path {
				case ".Group.Name", ".Group.Refresh.Disable", ".Nodegroup.Name", ".Nodegroup.ClusterName", ".Nodegroup.Version":
					continue
				}
				if (strings.HasPrefix(m.path, ".Group.") || strings.HasPrefix(m.path, ".Nodegroup.")) && has(p, m.path) {
					setMember(reflect.ValueOf(&p).Elem(), m.steps, 1)
				}
			}
			return p
		}
	}
	planned := func(before func() intent.Pool) func(*testing.T, intent.Pool) *Plan {
		m := newModel()
		if before != nil {
			m = madeFor(t, before())
		}
		return func(t *testing.T, pool intent.Pool) *Plan {
			p, _ := m.pass(t, clusterInput(pool))
			return p
		}
	}
	dropped := func(t *testing.T, pool intent.Pool) *Plan {
		p, _ := madeFor(t, pool).pass(t, clusterInput(groupPool("other", "m5.large", 1)))
		return p
	}
	for name, tt := range map[string]struct {
		pool func() intent.Pool
		plan func(*testing.T, intent.Pool) *Plan
	}{
		"a new group":                             {group, planned(nil)},
		"a group":                                 {group, planned(group)},
		"a group with everything":                 {group, planned(whole(group))},
		"a group that keeps everything":           {whole(group), planned(whole(group))},
		"a rollout":                               {larger, planned(group)},
		"a group that Git drops":                  {group, dropped},
		"a new nodegroup":                         {nodegroup, planned(nil)},
		"a nodegroup":                             {nodegroup, planned(nodegroup)},
		"a nodegroup with everything":             {nodegroup, planned(whole(nodegroup))},
		"a nodegroup that is replaced":            {spot, planned(nodegroup)},
		"everything that is replaced":             {spot, planned(whole(nodegroup))},
		"everything that is replaced by its like": {whole(spot), planned(whole(nodegroup))},
		"a new nodegroup with a template":         {launched, planned(nil)},
		"a nodegroup with a template":             {launched, planned(launched)},
		"a nodegroup's update":                    {released, planned(nodegroup)},
		"a nodegroup that Git drops":              {nodegroup, dropped},
	} {
		t.Run(name, func(t *testing.T) {
			members := map[string]member{}
			for _, m := range membersOf(reflect.TypeFor[intent.Pool](), member{}) {
				members[m.path] = m
			}
			usual := tt.plan(t, tt.pool())
			for path, m := range members {
				if pool := tt.pool(); !has(pool, path) {
					continue
				}
				plans := []*Plan{usual}
				for n := 1; n <= 2; n++ {
					pool := tt.pool()
					v := reflect.ValueOf(&pool).Elem()
					if beside := together[path]; beside != "" {
						setMember(v, members[beside].steps, 1)
					}
					setMember(v, m.steps, n)
					plans = append(plans, tt.plan(t, pool))
				}
				for i := range plans {
					for _, other := range plans[:i] {
						if a, b, found := hidden(t, other, plans[i]); found && untold[path] == "" {
							t.Errorf("%s: one digest for\n%s\n%s\n%s", path, sends(t, a), sends(t, b), tells(t, a))
						}
					}
				}
			}
		})
	}
}

// has reports whether the member is of a part that the pool has.
func has(p intent.Pool, path string) bool {
	switch {
	case strings.HasPrefix(path, ".Group."):
		return p.Group != nil
	case strings.HasPrefix(path, ".Nodegroup."):
		return p.Nodegroup != nil
	case strings.HasPrefix(path, ".LaunchTemplate."):
		return p.LaunchTemplate != nil
	}
	return true
}
