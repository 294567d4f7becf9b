package convert

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// memberTree is the members of a struct by AWS's names, with what they hold.
func memberTree(t reflect.Type, name func(reflect.StructField) string) any {
	switch t.Kind() {
	case reflect.Pointer:
		return memberTree(t.Elem(), name)
	case reflect.Slice:
		return []any{memberTree(t.Elem(), name)}
	case reflect.Struct:
		out := map[string]any{}
		for i := range t.NumField() {
			if n := name(t.Field(i)); n != "" {
				out[n] = memberTree(t.Field(i).Type, name)
			}
		}
		return out
	}
	return t.Kind().String()
}

// TestMembersAreThoseOfTheSDK: a member that is in the one type and not in the
// other would be lost between them without a word.
func TestMembersAreThoseOfTheSDK(t *testing.T) {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[types.LaunchTemplateOverrides](), reflect.TypeFor[intent.Override]()},
		{reflect.TypeFor[types.AvailabilityZoneDistribution](), reflect.TypeFor[intent.ZoneDistribution]()},
		{reflect.TypeFor[types.AvailabilityZoneImpairmentPolicy](), reflect.TypeFor[intent.ZoneImpairment]()},
		{reflect.TypeFor[types.CapacityReservationSpecification](), reflect.TypeFor[intent.GroupReservation]()},
		{reflect.TypeFor[types.InstanceLifecyclePolicy](), reflect.TypeFor[intent.LifecyclePolicy]()},
		{reflect.TypeFor[types.InstanceMaintenancePolicy](), reflect.TypeFor[intent.HealthyPercentages]()},
		{reflect.TypeFor[types.TrafficSourceIdentifier](), reflect.TypeFor[intent.TrafficSource]()},
	} {
		sdk := memberTree(pair[0], func(f reflect.StructField) string {
			if f.IsExported() {
				return f.Name
			}
			return ""
		})
		own := memberTree(pair[1], Name)
		if d := cmp.Diff(sdk, own); d != "" {
			t.Errorf("%s (-SDK +%s):\n%s", pair[0], pair[1], d)
		}
	}
}

// ownElsewhere are the members of UpdateAutoScalingGroup that are no settings: sizes, what
// instances are launched from and where, or what nobody sets.
var ownElsewhere = []string{
	"AutoScalingGroupName", "AvailabilityZoneIds", "AvailabilityZones", "Context", "DesiredCapacity",
	"LaunchConfigurationName", "LaunchTemplate", "MaxSize", "MinSize", "MixedInstancesPolicy", "VPCZoneIdentifier",
}

// TestEverySettingIsSent: all members of a group that can be changed are rows of the
// table or have code of their own, and each of which the call takes the value is in it.
func TestEverySettingIsSent(t *testing.T) {
	var g intent.GroupSettings
	fillMembers(reflect.ValueOf(&g).Elem())
	var update autoscaling.UpdateAutoScalingGroupInput
	var create autoscaling.CreateAutoScalingGroupInput
	CarrySettings(&g, &update)
	CarrySettings(&g, &create)
	check := func(in reflect.Value, without ...string) {
		for i := range in.NumField() {
			name := in.Type().Field(i).Name
			if own := slices.Contains(without, name) || !in.Type().Field(i).IsExported(); own != in.Field(i).IsZero() {
				t.Errorf("%s.%s is sent: %v", in.Type().Name(), name, own)
			}
		}
	}
	check(reflect.ValueOf(update), ownElsewhere...)
	check(reflect.ValueOf(create), append(ownElsewhere, "InstanceId", "LifecycleHookSpecificationList", "Operator", "Tags")...)
}

// TestEveryPreferenceIsSent does the same for instance refreshes.
func TestEveryPreferenceIsSent(t *testing.T) {
	var r, back intent.Refresh
	fillMembers(reflect.ValueOf(&r).Elem())
	sent := Preferences(r)
	for v, i := reflect.ValueOf(*sent), 0; i < v.NumField(); i++ {
		if f := v.Type().Field(i); f.IsExported() && v.Field(i).IsZero() {
			t.Errorf("%s is not sent", f.Name)
		}
	}
	Carry(sent, &back)
	back.Disable, back.Strategy = r.Disable, r.Strategy
	if d := cmp.Diff(r, back); d != "" {
		t.Errorf("there and back (-want +got):\n%s", d)
	}
	if p := Preferences(intent.Refresh{}); p.SkipMatching == nil || !*p.SkipMatching {
		t.Error("what matches is replaced unless Git says so")
	}
}

// TestCarryLosesNothing takes every member there and back.
func TestCarryLosesNothing(t *testing.T) {
	var want, got intent.Override
	fillMembers(reflect.ValueOf(&want).Elem())
	var sdk types.LaunchTemplateOverrides
	Carry(want, &sdk)
	Carry(sdk, &got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("there and back (-want +got):\n%s", d)
	}
}

func fillMembers(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillMembers(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fillMembers(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillMembers(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Int32:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.1)
	case reflect.Bool:
		v.SetBool(true)
	}
}

// TestEveryMemberOfATemplateIsDecided: what EC2 takes in a launch template is a row of
// the table of fields, or is refused there with a reason.
func TestEveryMemberOfATemplateIsDecided(t *testing.T) {
	decided := map[string]bool{}
	refused := slices.Collect(maps.Keys(field.Refusals(field.Template)))
	for i, path := range refused {
		refused[i] = strings.ReplaceAll(path, "[]", "")
	}
	for _, r := range field.Rows(field.Template) {
		decided[strings.ReplaceAll(r.AWS, "[]", "")] = true
	}
	eachLeaf(reflect.TypeFor[ec2types.RequestLaunchTemplateData](), "", func(path string, _ func(reflect.Value)) {
		is := func(member string) bool { return path == member || strings.HasPrefix(path, member+".") }
		if !decided[path] && !slices.ContainsFunc(refused, is) {
			t.Errorf("%s is no row and is not refused", path)
		}
		delete(decided, path)
	})
	for path := range decided {
		t.Errorf("EC2 has no %s", path)
	}
}

// TestNodegroupSettingsLoseNothing takes every setting of a nodegroup there and back.
func TestNodegroupSettingsLoseNothing(t *testing.T) {
	var want intent.NodegroupSettings
	fillMembers(reflect.ValueOf(&want).Elem())
	want.Labels = map[string]string{"a": "b"}
	var in eks.CreateNodegroupInput
	NodegroupSettings(&want, &in)
	got := Nodegroup(&ekstypes.Nodegroup{
		AmiType: in.AmiType, ReleaseVersion: in.ReleaseVersion, Version: in.Version, CapacityType: in.CapacityType, InstanceTypes: in.InstanceTypes, DiskSize: in.DiskSize,
		RemoteAccess: in.RemoteAccess, Labels: in.Labels, Taints: in.Taints, UpdateConfig: in.UpdateConfig, NodeRepairConfig: in.NodeRepairConfig, WarmPoolConfig: in.WarmPoolConfig,
	})
	if d := cmp.Diff(want, got.NodegroupSettings); d != "" {
		t.Errorf("there and back (-want +got):\n%s", d)
	}
}
