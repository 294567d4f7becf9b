package field

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/intent"
)

// TestEveryMemberOfTheIntentIsARow: a member without a row would have no origin and no
// place in the documentation.
func TestEveryMemberOfTheIntentIsARow(t *testing.T) {
	for of, roots := range map[Kind][]reflect.Type{
		Template: {reflect.TypeFor[intent.TemplateData]()}, Group: {reflect.TypeFor[intent.GroupSettings](), reflect.TypeFor[intent.GroupOptions]()},
		Refresh: {reflect.TypeFor[intent.Refresh]()}, Nodegroup: {reflect.TypeFor[intent.NodegroupSettings]()},
	} {
		var got, want []string
		for _, r := range Rows(of) {
			got = append(got, strings.ToLower(r.member()))
		}
		for _, root := range roots {
			leaves(root, "", &want)
		}
		for i, path := range want {
			want[i] = strings.ToLower(path)
		}
		want = slices.DeleteFunc(want, func(path string) bool { return strings.HasPrefix(path, "options.") })
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("rows of %s (-members +rows):\n%s", of, d)
		}
	}
}

func leaves(t reflect.Type, path string, to *[]string) {
	switch {
	case t.Kind() == reflect.Pointer:
		leaves(t.Elem(), path, to)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		leaves(t.Elem(), path+"[]", to)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			leaves(t.Field(i).Type, strings.TrimPrefix(path+"."+JSONKey(t.Field(i)), "."), to)
		}
	default:
		*to = append(*to, path)
	}
}

func TestFields(t *testing.T) {
	tests := []struct{ member, want string }{
		{"KeyName", "awsLaunchTemplate.sshKeyName"},
		{"InstanceMarketOptions.MarketType", "awsLaunchTemplate.marketType awsLaunchTemplate.spotMarketOptions"},
		{"NetworkInterfaces[2].DeviceIndex", "options launchTemplate.networkInterfaces[2].deviceIndex"},
		{"NetworkInterfaces[2].Groups[1]", "options launchTemplate.networkInterfaces[2].groups[1]"},
		{"CapacityReservationSpecification.CapacityReservationResourceGroupArn",
			"options launchTemplate.capacityReservationSpecification.capacityReservationTarget.capacityReservationResourceGroupArn"},
		{"BlockDeviceMappings[1].Ebs.Encrypted", "awsLaunchTemplate.nonRootVolumes[1].encrypted awsLaunchTemplate.nonRootVolumes[1].encryptionKey"},
		{"MetadataOptions", ""}, {"Nothing.AtAll", ""}, {"KeyName.More", ""},
	}
	for _, tt := range tests {
		member, err := intent.ParsePath(tt.member)
		if err != nil {
			t.Fatal(err)
		}
		paths, ofOptions := Fields(Template, member)
		var got []string
		if ofOptions {
			got = append(got, "options")
		}
		for _, p := range paths {
			got = append(got, p.String())
		}
		if d := cmp.Diff(tt.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.member, d)
		}
	}
}
