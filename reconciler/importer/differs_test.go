package importer

import (
	"slices"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Members that differ are named in AWS's words; tags of launches are no difference.
func TestTheMembersThatDifferAreNamed(t *testing.T) {
	holds := intent.TemplateData{InstanceType: "m5.large", ImageID: "ami-1", UserData: "YQ==", MetadataOptions: &intent.MetadataOptions{HTTPTokens: "required"},
		TagSpecifications: []intent.TemplateTagSpecification{{ResourceType: "instance"}}}
	p := Pool{holds: observed.TemplateVersion{Data: holds}}
	if got := p.Differs(holds); got != nil {
		t.Errorf("nothing differs: %v", got)
	}
	made := holds
	made.ImageID, made.TagSpecifications, made.UserData = "ami-2", nil, "Yg=="
	made.MetadataOptions = &intent.MetadataOptions{HTTPTokens: "optional"}
	got := p.Differs(made)
	if len(got) != 3 || !slices.IsSorted(got) {
		t.Errorf("got %v", got)
	}
	t.Log(got)
}

// What a pool is refused for says the first way too, if the second one failed for more.
func TestTheReasonIsThatOfTheBetterWay(t *testing.T) {
	named := Pool{State: Whole}
	second := Pool{State: Whole, Owned: true, other: &named}
	first := Pool{State: Whole, Owned: true, other: &second}
	out := first.Refuse("ImageId would differ").Refuse("BlockDeviceMappings, ImageId would differ")
	if len(out.Advice) != 1 || out.Advice[0] != "the manifest only names the existing launch template, which weir does not change, because it cannot describe it: ImageId would differ" {
		t.Errorf("advice %q", out.Advice)
	}
}
