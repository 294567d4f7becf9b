package importer

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// silent are members of what is observed that make no difference to what is imported, each
// with why. A member that begins with one is of it.
var silent = map[string]string{
	"Group.ARN":                                           "AWS makes it of the name",
	"Group.DesiredCapacity":                               "an autoscaler may set it, so no manifest says it",
	"Group.Instances":                                     "a group's machines are its own; the plan before anything is written looks at what they run",
	"Group.CreatedAt":                                     "nobody can say it anew",
	"Group.LaunchConfiguration":                           "a group with a template launches from that; TestSaid has one without",
	"Group.Template.ID":                                   "its name says which it is",
	"Group.Template.Content":                              "it is of steps",
	"Group.Options.DeleteWarmPool":                        "it says that there is no warm pool, which a manifest without one leaves as it is",
	"Group.Options.LoadBalancerNames":                     "Auto Scaling lists them among the traffic sources",
	"Group.Options.TargetGroupARNs":                       "Auto Scaling lists them among the traffic sources",
	"Group.Options.SkipZonalShiftValidation":              "it goes with requests; no group has it",
	"Nodegroup.ARN":                                       "AWS makes it of the name",
	"Nodegroup.DesiredSize":                               "an autoscaler may set it, so no manifest says it",
	"Nodegroup.Template.ID":                               "its name says which it is",
	"Nodegroup.Template.Content":                          "it is of steps",
	"Nodegroup.GroupNames":                                "EKS makes them",
	"Nodegroup.HealthIssues":                              "they pass",
	"Nodegroup.CreatedAt":                                 "nobody can say it anew",
	"Nodegroup.DescribedAtPass":                           "it is of how it was read",
	"TemplateVersion.Number":                              "the version that weir makes has its own",
	"TemplateVersion.Description":                         "weir writes its own",
	"TemplateVersion.Body":                                "it follows from what the version holds",
	"TemplateVersion.Data.TagSpecifications.ResourceType": "the pool's tags are on machines and volumes",
}

// values are two values of members that take words of AWS alone.
var values = map[string][2]any{
	"Nodegroup.Status":       {"ACTIVE", "CREATING"},
	"Nodegroup.CapacityType": {"ON_DEMAND", "SPOT"},
	"Nodegroup.AMIType":      {"AL2023_x86_64_STANDARD", "CUSTOM"},
	"TemplateVersion.Data.InstanceMarketOptions.MarketType":            {"spot", "capacity-block"},
	"TemplateVersion.Data.CapacityReservationSpecification.Preference": {"none", "open"},
}

// TestEveryObservedMemberIsKnown: a member of what AWS says of groups, nodegroups and
// versions of templates is imported, named in the report, a reason to refuse the pool, or
// listed above. So one that is new cannot be left out in silence.
func TestEveryObservedMemberIsKnown(t *testing.T) {
	group := observed.Group{Name: "web", SubnetIDs: []string{"subnet-1"}, Template: observed.TemplateRef{ID: "lt-1", Name: "theirs", Version: "1"}, Tags: map[string]observed.GroupTag{"kubernetes.io/cluster/demo": {Value: "owned"}}}
	nodegroup := observed.Nodegroup{NodegroupName: observed.NodegroupName{Cluster: "demo", Name: "ng"}, Status: "ACTIVE", SubnetIDs: []string{"subnet-1"}, Template: observed.TemplateRef{ID: "lt-1", Name: "theirs", Version: "1"}}
	version := observed.TemplateVersion{Number: 1, Data: intent.TemplateData{InstanceType: "m5.large"}}
	used := map[string]bool{}
	for of, imported := range map[reflect.Type]func(reflect.Value) observed.State{
		reflect.TypeFor[observed.Group](): func(v reflect.Value) observed.State {
			return observed.State{Groups: map[string]observed.Group{"web": v.Interface().(observed.Group)}}
		},
		reflect.TypeFor[observed.Nodegroup](): func(v reflect.Value) observed.State {
			n := v.Interface().(observed.Nodegroup)
			return observed.State{Nodegroups: map[observed.NodegroupName]observed.Nodegroup{n.NodegroupName: n}}
		},
		reflect.TypeFor[observed.TemplateVersion](): func(v reflect.Value) observed.State {
			for i, b := range v.Interface().(observed.TemplateVersion).Data.BlockDeviceMappings {
				if b.Ebs.DeleteOnTermination == nil { // such a volume can be said
					v.FieldByName("Data").FieldByName("BlockDeviceMappings").Index(i).FieldByName("Ebs").FieldByName("DeleteOnTermination").Set(reflect.ValueOf(new(true)))
				}
			}
			return observed.State{Groups: map[string]observed.Group{"web": group}, Templates: map[string]observed.Template{"theirs": {ID: "lt-1", Name: "theirs", Versions: map[int64]observed.TemplateVersion{1: v.Interface().(observed.TemplateVersion)}}}}
		},
	} {
		base := map[string]any{"Group": group, "Nodegroup": nodegroup, "TemplateVersion": version}[of.Name()]
		options := Options{Plain: true, Templates: Name}
		if of.Name() == "TemplateVersion" {
			options.Templates = Own
		}
		leaves(of, of.Name(), func(path string, set func(root reflect.Value, second bool)) {
			var got [2]string
			for i := range got {
				root := reflect.New(of).Elem()
				root.Set(reflect.ValueOf(base))
				set(root, i == 1)
				got[i] = imports(t, imported(root), options)
			}
			why := ""
			for prefix, reason := range silent {
				if path == prefix || strings.HasPrefix(path, prefix+".") {
					why, used[prefix] = reason, true
				}
			}
			switch {
			case got[0] == got[1] && why == "":
				t.Errorf("%s makes no difference:\n%s", path, got[0])
			case got[0] != got[1] && why != "":
				t.Errorf("%s is listed, as %s, and makes one:\n%s\n%s", path, why, got[0], got[1])
			}
		})
	}
	for prefix := range silent {
		if !used[prefix] {
			t.Errorf("nothing that is observed is %s", prefix)
		}
	}
}

// imports is all that comes of a state.
func imports(t *testing.T, s observed.State, o Options) string {
	t.Helper()
	pools := Make(s, o)
	files, err := Files(s, pools)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for name, text := range files {
		texts[name] = string(text)
	}
	out, err := json.Marshal([]any{pools, texts, Secrets(pools)})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// leaves visits every member of a struct that holds no others, with what gives it the first
// or the second of two values. What leads to it is there then, lists with one item.
func leaves(of reflect.Type, path string, visit func(string, func(reflect.Value, bool))) {
	each(of, path, func(root reflect.Value) reflect.Value { return root }, visit)
}

func each(of reflect.Type, path string, at func(reflect.Value) reflect.Value, visit func(string, func(reflect.Value, bool))) {
	if v, is := values[path]; is {
		visit(path, func(root reflect.Value, second bool) {
			which := v[0]
			if second {
				which = v[1]
			}
			at(root).Set(reflect.ValueOf(which).Convert(of))
		})
		return
	}
	if of == reflect.TypeFor[time.Time]() {
		visit(path, func(root reflect.Value, second bool) {
			at(root).Set(reflect.ValueOf(time.Unix(choose(second, int64(1), 2), 0)))
		})
		return
	}
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				name := "." + of.Field(i).Name
				if of.Field(i).Anonymous {
					name = ""
				}
				each(of.Field(i).Type, path+name, func(root reflect.Value) reflect.Value { return at(root).Field(i) }, visit)
			}
		}
	case reflect.Pointer:
		each(of.Elem(), path, func(root reflect.Value) reflect.Value {
			v := at(root)
			if v.IsNil() {
				v.Set(reflect.New(of.Elem()))
			}
			return v.Elem()
		}, visit)
	case reflect.Slice:
		each(of.Elem(), path, func(root reflect.Value) reflect.Value {
			v := at(root)
			v.Set(reflect.MakeSlice(of, 1, 1))
			return v.Index(0)
		}, visit)
	case reflect.Map:
		visit(path, func(root reflect.Value, second bool) {
			entry := reflect.New(of.Elem()).Elem()
			leaves(of.Elem(), "", func(_ string, set func(reflect.Value, bool)) { set(entry, second) })
			m := reflect.MakeMap(of)
			for _, k := range at(root).MapKeys() {
				m.SetMapIndex(k, at(root).MapIndex(k))
			}
			m.SetMapIndex(reflect.ValueOf("key").Convert(of.Key()), entry)
			at(root).Set(m)
		})
	case reflect.String:
		visit(path, func(root reflect.Value, second bool) { at(root).SetString(choose(second, "text-1", "text-2")) })
	case reflect.Bool:
		visit(path, func(root reflect.Value, second bool) { at(root).SetBool(!second) })
	case reflect.Int32, reflect.Int64:
		visit(path, func(root reflect.Value, second bool) { at(root).SetInt(choose(second, int64(101), 102)) })
	case reflect.Float64:
		visit(path, func(root reflect.Value, second bool) { at(root).SetFloat(choose(second, 1.5, 2.5)) })
	default:
		panic(fmt.Sprintf("%s has the kind %s", path, of.Kind()))
	}
}

func choose[T any](second bool, a, b T) T {
	if second {
		return b
	}
	return a
}
