package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

func p[T any](v T) *T { return &v }

// full is template data with every member set.
func full() intent.TemplateData {
	return intent.TemplateData{
		ImageID: "ami-1", InstanceType: "m5.large", KeyName: "key",
		IamInstanceProfile: &intent.InstanceProfile{Name: "profile"},
		BlockDeviceMappings: []intent.BlockDeviceMapping{
			{DeviceName: "/dev/xvda", Ebs: intent.Ebs{VolumeSize: 30, VolumeType: "gp3", Iops: 3000, Throughput: 125, Encrypted: p(true), KmsKeyID: "k", DeleteOnTermination: p(true)}},
			{DeviceName: "/dev/sdb", Ebs: intent.Ebs{VolumeSize: 10, Encrypted: p(false)}},
		},
		SecurityGroupIDs: []string{"sg-1", "sg-2"}, UserData: "dXNlcg==",
		InstanceMarketOptions:            &intent.MarketOptions{MarketType: "spot", MaxPrice: "0.1"},
		CapacityReservationSpecification: &intent.CapacityReservation{Preference: "none", TargetID: "cr-1"},
		MetadataOptions: &intent.MetadataOptions{HTTPEndpoint: "enabled", HTTPProtocolIPv6: "enabled", HTTPPutResponseHopLimit: 2,
			HTTPTokens: "required", InstanceMetadataTags: "enabled"},
		EnclaveOptions:        &intent.EnclaveOptions{Enabled: p(false)},
		PrivateDNSNameOptions: &intent.PrivateDNSNameOptions{HostnameType: "ip-name", EnableResourceNameDNSARecord: p(true), EnableResourceNameDNSAAAARecord: p(false)},
		TagSpecifications: []intent.TemplateTagSpecification{
			{ResourceType: "instance", Tags: []intent.Tag{{Key: "a", Value: "1"}, {Key: "b", Value: ""}}},
			{ResourceType: "volume", Tags: []intent.Tag{{Key: "a", Value: "1"}}},
		},
		CPUOptions:          &intent.CPUOptions{AmdSevSnp: "enabled", CoreCount: 4, NestedVirtualization: "disabled", ThreadsPerCore: 1},
		CreditSpecification: &intent.CreditSpecification{CPUCredits: "unlimited"}, DisableAPIStop: p(false), DisableAPITermination: p(true), EbsOptimized: p(false),
		HibernationOptions: &intent.HibernationOptions{Configured: p(true)}, InstanceInitiatedShutdownBehavior: "terminate", KernelID: "aki-1", RAMDiskID: "ari-1",
		LicenseSpecifications: []intent.LicenseConfiguration{{LicenseConfigurationARN: "arn:b"}, {LicenseConfigurationARN: "arn:a"}},
		MaintenanceOptions:    &intent.MaintenanceOptions{AutoRecovery: "disabled"}, Monitoring: &intent.Monitoring{Enabled: p(true)},
		NetworkInterfaces: []intent.NetworkInterface{
			{DeviceIndex: p(int32(0)), NetworkCardIndex: p(int32(0)), InterfaceType: "efa", Groups: []string{"sg-1", "sg-2"}, AssociatePublicIPAddress: p(false), DeleteOnTermination: p(true)},
			{DeviceIndex: p(int32(1)), NetworkCardIndex: p(int32(1)), InterfaceType: "efa-only", Description: "second", SubnetID: "subnet-1",
				ConnectionTrackingSpecification: &intent.ConnectionTracking{TCPEstablishedTimeout: 60, UDPStreamTimeout: 60, UDPTimeout: 30},
				EnaSrdSpecification:             &intent.EnaSrd{EnaSrdEnabled: p(true), EnaSrdUDPSpecification: &intent.EnaSrdUDP{EnaSrdUDPEnabled: p(false)}}},
		},
		NetworkPerformanceOptions: &intent.NetworkPerformanceOptions{BandwidthWeighting: "vpc-1"},
		Placement:                 &intent.Placement{GroupName: "cluster", PartitionNumber: 2, Tenancy: "dedicated", Affinity: "host", HostID: "h-1", GroupID: "pg-1", HostResourceGroupARN: "arn:g"},
	}
}

// stored is what EC2 would answer to a request: the same members by name.
func stored(t *testing.T, in *types.RequestLaunchTemplateData) *types.ResponseLaunchTemplateData {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out := &types.ResponseLaunchTemplateData{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTemplateDataComesBackAsItWasSent(t *testing.T) {
	tests := map[string]intent.TemplateData{
		"empty": {}, "full": full(),
		"profile by ARN": {IamInstanceProfile: &intent.InstanceProfile{ARN: "arn:aws:iam::1:instance-profile/x"}},
		"spot":           {InstanceMarketOptions: &intent.MarketOptions{MarketType: "spot"}},
		"empty options":  {EnclaveOptions: &intent.EnclaveOptions{}},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			got, unknown := TemplateData(stored(t, TemplateRequest(want)))
			if unknown {
				t.Error("unknown members in what weir sent itself")
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("data (-want +got):\n%s", d)
			}
		})
	}
}

func TestTemplateDataIsReadInCanonicalOrder(t *testing.T) {
	in := TemplateRequest(full())
	in.SecurityGroupIds = []string{"sg-2", "sg-1"}
	in.TagSpecifications[0], in.TagSpecifications[1] = in.TagSpecifications[1], in.TagSpecifications[0]
	tags := in.TagSpecifications[1].Tags
	tags[0], tags[1] = tags[1], tags[0]
	got, _ := TemplateData(stored(t, in))
	if d := cmp.Diff(full(), got); d != "" {
		t.Errorf("data (-want +got):\n%s", d)
	}
}

// TestEveryMemberIsKnownOrUnknown sets each leaf of the answer's data by itself:
// it has to show in the data that weir reads, or to make it unknown. Members that
// a later SDK adds are covered without a change here.
func TestEveryMemberIsKnownOrUnknown(t *testing.T) {
	ignored := map[string]bool{"MetadataOptions.State": true} // how far AWS has applied the options
	empty, _ := TemplateData(&types.ResponseLaunchTemplateData{})
	leaves := 0
	eachLeaf(reflect.TypeFor[types.ResponseLaunchTemplateData](), "", func(path string, set func(reflect.Value)) {
		leaves++
		var in types.ResponseLaunchTemplateData
		set(reflect.ValueOf(&in).Elem())
		got, unknown := TemplateData(&in)
		if shows := !reflect.DeepEqual(got, empty) && holdsLeaf(got); !shows && !unknown && !ignored[path] {
			t.Errorf("%s is neither read nor unknown: %+v", path, got)
		}
		// A member that was read must come back when it is sent again, or a known
		// member would be lost without a word.
		if back, _ := TemplateData(stored(t, TemplateRequest(got))); !unknown && !ignored[path] && !reflect.DeepEqual(back, got) {
			t.Errorf("%s does not survive the way back: %+v, %+v", path, got, back)
		}
	})
	if leaves < 100 {
		t.Errorf("only %d members were tried", leaves)
	}
}

// holdsLeaf reports whether data holds a value, and not only empty structs.
func holdsLeaf(d intent.TemplateData) bool { return isSet(reflect.ValueOf(d)) }

// eachLeaf calls f for each leaf below a struct type, with a function that sets
// just that leaf.
func eachLeaf(typ reflect.Type, path string, f func(path string, set func(root reflect.Value))) {
	walk(typ, path, func(root reflect.Value) reflect.Value { return root }, f)
}

func walk(typ reflect.Type, path string, at func(reflect.Value) reflect.Value, f func(string, func(reflect.Value))) {
	switch {
	case typ == reflect.TypeFor[time.Time]():
		f(path, func(root reflect.Value) { at(root).Set(reflect.ValueOf(time.Unix(1, 0))) })
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			if field := typ.Field(i); field.IsExported() {
				walk(field.Type, strings.TrimPrefix(path+"."+field.Name, "."), func(root reflect.Value) reflect.Value { return at(root).Field(i) }, f)
			}
		}
	case typ.Kind() == reflect.Pointer:
		walk(typ.Elem(), path, func(root reflect.Value) reflect.Value {
			v := at(root)
			if v.IsNil() {
				v.Set(reflect.New(typ.Elem()))
			}
			return v.Elem()
		}, f)
	case typ.Kind() == reflect.Slice:
		walk(typ.Elem(), path, func(root reflect.Value) reflect.Value {
			v := at(root)
			if v.Len() == 0 {
				v.Set(reflect.MakeSlice(typ, 1, 1))
			}
			return v.Index(0)
		}, f)
	default:
		f(path, func(root reflect.Value) {
			v := at(root)
			switch v.Kind() {
			case reflect.String:
				v.SetString("x")
			case reflect.Bool:
				v.SetBool(true)
			case reflect.Int32, reflect.Int64:
				v.SetInt(7)
			case reflect.Float64:
				v.SetFloat(7)
			default:
				panic(fmt.Sprintf("%s has the kind %s", path, v.Kind()))
			}
		})
	}
}

// TestEveryMemberOfAPolicyIsKnownOrUnknown does for mixed instances policies what
// TestEveryMemberIsKnownOrUnknown does for templates.
func TestEveryMemberOfAPolicyIsKnownOrUnknown(t *testing.T) {
	empty, none, _ := Policy(&astypes.MixedInstancesPolicy{})
	eachLeaf(reflect.TypeFor[astypes.MixedInstancesPolicy](), "", func(path string, set func(reflect.Value)) {
		var in astypes.MixedInstancesPolicy
		set(reflect.ValueOf(&in).Elem())
		got, ref, unknown := Policy(&in)
		if !unknown && reflect.DeepEqual(got, empty) && ref == none {
			t.Errorf("%s is neither read nor unknown", path)
		}
	})
}

func TestMixedPolicyComesBackAsItWasSent(t *testing.T) {
	want := &intent.MixedInstances{OnDemandAllocationStrategy: "lowest-price", OnDemandBaseCapacity: 1, OnDemandPercentageAboveBaseCapacity: 0,
		SpotAllocationStrategy: "price-capacity-optimized", Overrides: []intent.Override{{InstanceType: "m5.large"}, {InstanceType: "a1.large"}}}
	for _, use := range []Use{Creates, Updates, Refreshes} {
		got, ref, unknown := Policy(PolicyRequest(want, observed.TemplateRef{ID: "lt-1", Version: "2"}, use))
		if d := cmp.Diff(want, got); d != "" || unknown {
			t.Errorf("policy, unknown %v (-want +got):\n%s", unknown, d)
		}
		if d := cmp.Diff(observed.TemplateRef{ID: "lt-1", Version: "2"}, ref); d != "" {
			t.Errorf("template (-want +got):\n%s", d)
		}
	}
}

// TestARefreshHoldsNoEmptyList: whatever Git leaves empty is absent from the request, and an
// update alone says that overrides go.
func TestARefreshHoldsNoEmptyList(t *testing.T) {
	emptyLists := func(v any) (found []string) {
		var walk func(at string, v reflect.Value)
		walk = func(at string, v reflect.Value) {
			switch v.Kind() {
			case reflect.Pointer:
				if !v.IsNil() {
					walk(at, v.Elem())
				}
			case reflect.Struct:
				for i := range v.NumField() {
					walk(at+"."+v.Type().Field(i).Name, v.Field(i))
				}
			case reflect.Slice:
				if !v.IsNil() && v.Len() == 0 {
					found = append(found, at)
				}
				for i := range v.Len() {
					walk(at, v.Index(i))
				}
			}
		}
		walk("", reflect.ValueOf(v))
		return found
	}
	preferences := intent.Refresh{CheckpointPercentages: []int32{}, AlarmSpecification: &intent.AlarmSpecification{Alarms: []string{}}}
	bare := UsualPolicy()
	bare.Overrides = []intent.Override{}
	for name, request := range map[string]any{
		"preferences": Preferences(preferences), "no overrides": PolicyRequest(bare, observed.TemplateRef{ID: "lt-1"}, Refreshes), "a new group": PolicyRequest(bare, observed.TemplateRef{ID: "lt-1"}, Creates),
	} {
		if found := emptyLists(request); len(found) > 0 {
			t.Errorf("%s: empty lists %v", name, found)
		}
	}
	if found := emptyLists(PolicyRequest(bare, observed.TemplateRef{ID: "lt-1"}, Updates)); !slices.Equal(found, []string{".LaunchTemplate.Overrides"}) {
		t.Errorf("an update: empty lists %v", found)
	}
}

// TestRequestsNameTemplatesOnce: what was read names each template by id and name, and AWS
// refuses the two together.
func TestRequestsNameTemplatesOnce(t *testing.T) {
	m := UsualPolicy()
	m.Overrides = []intent.Override{{InstanceType: "m5.large", LaunchTemplate: &intent.LaunchTemplateSpecification{ID: "lt-2", Name: "arm", Version: "3"}},
		{InstanceType: "c5.large", LaunchTemplate: &intent.LaunchTemplateSpecification{Name: "arm", Version: "3"}}}
	to := PolicyRequest(m, observed.TemplateRef{ID: "lt-1", Name: "web", Version: "2"}, Updates).LaunchTemplate
	var got []string
	for _, s := range []*astypes.LaunchTemplateSpecification{to.LaunchTemplateSpecification, to.Overrides[0].LaunchTemplateSpecification, to.Overrides[1].LaunchTemplateSpecification} {
		got = append(got, aws.ToString(s.LaunchTemplateId)+"/"+aws.ToString(s.LaunchTemplateName)+"/"+aws.ToString(s.Version))
	}
	if want := []string{"lt-1//2", "lt-2//3", "/arm/3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if m.Overrides[0].LaunchTemplate.Name == "" {
		t.Error("the policy itself was changed")
	}
}
