package field_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

func TestAPoolsOwnFieldsAreCopied(t *testing.T) {
	type update struct {
		Most *int32 `json:"maxUnavailablePercentage"`
		Old  *int32 `json:"maxUnavailablePrecentage"`
		N    *int32 `json:"maxUnavailable"`
	}
	type access struct {
		Key    *string  `json:"sshKeyName"`
		Groups []string `json:"sourceSecurityGroups"`
	}
	type repair struct {
		Enabled *bool `json:"enabled"`
	}
	type amiType string
	spec := struct {
		AMIType amiType           `json:"amiType"`
		Version *string           `json:"amiVersion"`
		Disk    *int64            `json:"diskSize"`
		Labels  map[string]string `json:"labels"`
		Access  *access           `json:"remoteAccess"`
		Update  *update           `json:"updateConfig"`
		Repair  *repair           `json:"nodeRepairConfig"`
	}{AMIType: "AL2023_x86_64_STANDARD", Labels: map[string]string{"a": "b"}}
	disk, percent, no := int64(40), int32(30), false
	spec.Disk, spec.Update, spec.Repair = &disk, &update{Old: &percent}, &repair{&no}

	var got intent.NodegroupSettings
	field.FromPool(field.Nodegroup, &spec, &got)
	want := intent.NodegroupSettings{AMIType: "AL2023_x86_64_STANDARD", DiskSize: 40, Labels: map[string]string{"a": "b"},
		UpdateConfig: intent.UpdateConfig{MaxUnavailablePercentage: 30}, NodeRepair: &no}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	got.Labels["a"] = "c"
	if spec.Labels["a"] != "b" {
		t.Error("labels are shared with the manifest's")
	}
}
