package reconciler_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
)

// templateFields are the fields of awsLaunchTemplate, each with what EC2 then
// holds. Those whose name ends in a question mark made Cluster API Provider AWS
// make a version at each pass.
var templateFields = []struct {
	name, field string
	want        string // members of EC2's answer as JSON, null where none
}{
	{"ami.id", "ami: {id: %[1]s}", `{"ImageId": "%[1]s"}`},
	{"instance type", "", `{"InstanceType": "m5.large"}`},
	{"instance profile", "iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io", `{"IamInstanceProfile": {"Name": "nodes.cluster-api-provider-aws.sigs.k8s.io"}}`},
	{"no root volume?", "", `{"BlockDeviceMappings": null}`},
	{"root volume", "rootVolume: {size: 40, type: gp3, iops: 4000, throughput: 200, encrypted: true, encryptionKey: alias/ebs}",
		`{"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 40, "VolumeType": "gp3", "Iops": 4000, "Throughput": 200, "Encrypted": true, "KmsKeyId": "alias/ebs", "DeleteOnTermination": true}}]}`},
	{"further volumes", "nonRootVolumes: [{deviceName: /dev/sdb, size: 10, type: io2, iops: 500, encrypted: false}]",
		`{"BlockDeviceMappings": [{"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 10, "VolumeType": "io2", "Iops": 500, "Encrypted": false, "DeleteOnTermination": true}}]}`},
	{"ssh key", "sshKeyName: ops", `{"KeyName": "ops"}`},
	{"empty ssh key", `sshKeyName: ""`, `{"KeyName": null}`},
	{"spot at the on-demand price?", `spotMarketOptions: {maxPrice: ""}`, `{"InstanceMarketOptions": {"MarketType": "spot"}}`},
	{"spot with a price", `spotMarketOptions: {maxPrice: "0.05"}`, `{"InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.05"}}}`},
	{"market type", `marketType: Spot`, `{"InstanceMarketOptions": {"MarketType": "spot"}}`},
	{"on demand", `marketType: OnDemand`, `{"InstanceMarketOptions": null}`},
	{"capacity block", "marketType: CapacityBlock\ncapacityReservationId: cr-0123456789abcdef0",
		`{"InstanceMarketOptions": {"MarketType": "capacity-block"}, "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}}}`},
	{"reservation preference", `capacityReservationPreference: CapacityReservationsOnly`, `{"CapacityReservationSpecification": {"CapacityReservationPreference": "capacity-reservations-only"}}`},
	{"metadata with IPv6?", "instanceMetadataOptions: {httpProtocolIpv6: enabled}",
		`{"MetadataOptions": {"HttpEndpoint": "enabled", "HttpProtocolIpv6": "enabled", "HttpPutResponseHopLimit": 1, "HttpTokens": "optional", "InstanceMetadataTags": "disabled"}}`},
	{"metadata", "instanceMetadataOptions: {httpEndpoint: disabled, httpTokens: required, httpPutResponseHopLimit: 3, instanceMetadataTags: disabled}",
		`{"MetadataOptions": {"HttpEndpoint": "disabled", "HttpPutResponseHopLimit": 3, "HttpTokens": "required", "InstanceMetadataTags": "disabled"}}`},
	{"enclaves off?", "enclaveOptions: {enabled: false}", `{"EnclaveOptions": {"Enabled": false}}`},
	{"enclaves on", "enclaveOptions: {enabled: true}", `{"EnclaveOptions": {"Enabled": true}}`},
	{"enclaves left open", "enclaveOptions: {}", `{"EnclaveOptions": null}`},
	{"private DNS names without a host name type?", "privateDnsName: {enableResourceNameDnsARecord: true, enableResourceNameDnsAAAARecord: false}",
		`{"PrivateDnsNameOptions": {"EnableResourceNameDnsARecord": true, "EnableResourceNameDnsAAAARecord": false}}`},
	{"private DNS names left open", "privateDnsName: {}", `{"PrivateDnsNameOptions": null}`},
	{"private DNS names", "privateDnsName: {hostnameType: resource-name}", `{"PrivateDnsNameOptions": {"HostnameType": "resource-name"}}`},
	{"security groups", "additionalSecurityGroups: [{id: %[2]s}]", `{"SecurityGroupIds": ["%[2]s"]}`},
	{"security groups by filter", "additionalSecurityGroups: [{filters: [{name: group-name, values: [default]}]}]", `{"SecurityGroupIds": ["%[2]s"]}`},
}

// Every field reaches EC2 as it was written, makes one version and then nothing:
// neither a further version nor a rollout, also for a process that remembers
// nothing.
func TestEveryTemplateFieldMakesOneVersionAndThenSilence(t *testing.T) {
	t.Parallel()
	for _, tt := range templateFields {
		t.Run(strings.TrimSuffix(tt.name, "?"), func(t *testing.T) {
			w := newWorld(t)
			w.seed(`{"capacityReservations": [{"id": "cr-0123456789abcdef0", "type": "m5.large", "zone": "` + testRegion + `a", "count": 9}]}`)
			image, group := w.someImage(), w.someGroup()
			w.makeKey("alias/ebs")
			field, wanted := tt.field, tt.want
			for i, v := range []string{image, group} {
				field, wanted = strings.ReplaceAll(field, fmt.Sprintf("%%[%d]s", i+1), v), strings.ReplaceAll(wanted, fmt.Sprintf("%%[%d]s", i+1), v)
			}
			spec := "additionalTags: {team: platform}\nawsLaunchTemplate:\n  instanceType: m5.large\n  " + strings.ReplaceAll(field, "\n", "\n  ")
			blue := target("blue", written(t, "web", "", spec))
			w.settle(blue)
			w.stillAndSilent(blue)
			got := map[string]any{}
			remarshal(t, w.versions("web").LaunchTemplateVersions[0].LaunchTemplateData, &got)
			want := map[string]any{}
			if err := json.Unmarshal([]byte(wanted), &want); err != nil {
				t.Fatal(err)
			}
			for member := range want {
				if d := cmp.Diff(want[member], compact(got[member])); d != "" {
					t.Errorf("%s (-want +got):\n%s", member, d)
				}
			}
		})
	}
}

// makeKey makes a KMS key with an alias.
func (w *world) makeKey(alias string) {
	w.t.Helper()
	keys := kms.NewFromConfig(w.sdk)
	made, err := keys.CreateKey(w.t.Context(), &kms.CreateKeyInput{})
	if err == nil {
		_, err = keys.CreateAlias(w.t.Context(), &kms.CreateAliasInput{AliasName: aws.String(alias), TargetKeyId: made.KeyMetadata.KeyId})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// stillAndSilent makes passes with what converged: they write nothing, and the
// template has its one version.
func (w *world) stillAndSilent(targets ...reconciler.Desired) {
	w.t.Helper()
	w.srv.ResetCalls()
	for range 3 {
		if r := w.must(reconciler.Apply, targets...)[0]; !r.Converged() {
			w.t.Errorf("not converged any more: %v", r.Diagnostics)
		}
		w.restart()
	}
	if _, writes := w.calls(); writes != 0 {
		w.t.Errorf("writes after convergence: %v", w.srv.CallCounts())
	}
	if n := w.numbers("web"); len(n) != 1 {
		w.t.Errorf("versions: got %v, want one", n)
	}
}

func remarshal(t testing.TB, from, to any) {
	t.Helper()
	b, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatal(err)
	}
}

// compact drops what the SDK's structs have empty.
func compact(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, child := range v {
			if c := compact(child); c != nil {
				out[k] = c
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, child := range v {
			out = append(out, compact(child))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}

func (w *world) someImage() string {
	w.t.Helper()
	pool := groupPool("image", "m5.large", 0)
	w.settle(target("image", pool))
	v := w.versions("image").LaunchTemplateVersions[0]
	return aws.ToString(v.LaunchTemplateData.ImageId)
}

func (w *world) someGroup() string {
	w.t.Helper()
	return w.versions("image").LaunchTemplateVersions[0].LaunchTemplateData.SecurityGroupIds[0]
}
