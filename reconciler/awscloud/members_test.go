package awscloud

import (
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"
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
	} {
		sdk := memberTree(pair[0], func(f reflect.StructField) string {
			if f.IsExported() {
				return f.Name
			}
			return ""
		})
		own := memberTree(pair[1], memberName)
		if d := cmp.Diff(sdk, own); d != "" {
			t.Errorf("%s (-SDK +%s):\n%s", pair[0], pair[1], d)
		}
	}
}

// TestRecastLosesNothing takes every member there and back.
func TestRecastLosesNothing(t *testing.T) {
	var want, got intent.Override
	fillMembers(reflect.ValueOf(&want).Elem())
	var sdk types.LaunchTemplateOverrides
	recast(want, &sdk)
	recast(sdk, &got)
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
