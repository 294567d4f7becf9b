package field

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/intent"
)

// TestFewRowsOfANodegroupAreSpecial: most of a nodegroup is converted, compared and shown by
// the table. A row that needs code of its own is an exception.
func TestFewRowsOfANodegroupAreSpecial(t *testing.T) {
	special := 0
	for _, r := range Rows(Nodegroup) {
		if r.Special != "" {
			special++
		}
	}
	if special > 8 {
		t.Errorf("%d of %d rows are special", special, len(Rows(Nodegroup)))
	}
}

// TestBlocksAreMembers: every block is about a member that the intent has.
func TestBlocksAreMembers(t *testing.T) {
	found := 0
	for _, m := range NodegroupMembers() {
		if m.Block != nil {
			found++
		}
	}
	if found != len(nodegroupBlocks) {
		t.Errorf("%d of %d blocks are members", found, len(nodegroupBlocks))
	}
}

// TestComplete: values that mean the same to EKS become equal.
func TestComplete(t *testing.T) {
	yes, no, zero := true, false, int32(0)
	on := &intent.NodegroupWarmPool{Enabled: &yes, MinSize: &zero, PoolState: "STOPPED", ReuseOnScaleIn: &no}
	for name, tt := range map[string]struct {
		member      string
		value, want intent.NodegroupSettings
	}{
		"repair is off":             {"NodeRepair", intent.NodegroupSettings{NodeRepair: &no}, intent.NodegroupSettings{}},
		"repair is on":              {"NodeRepair", intent.NodegroupSettings{NodeRepair: &yes}, intent.NodegroupSettings{NodeRepair: &yes}},
		"no options of repair":      {"RepairOptions", intent.NodegroupSettings{RepairOptions: &intent.RepairOptions{}}, intent.NodegroupSettings{}},
		"a warm pool that is off":   {"WarmPool", intent.NodegroupSettings{WarmPool: &intent.NodegroupWarmPool{Enabled: &no, MinSize: &zero}}, intent.NodegroupSettings{}},
		"a warm pool with defaults": {"WarmPool", intent.NodegroupSettings{WarmPool: &intent.NodegroupWarmPool{Enabled: &yes}}, intent.NodegroupSettings{WarmPool: on}},
		"labels":                    {"Labels", intent.NodegroupSettings{Labels: map[string]string{"a": "b"}}, intent.NodegroupSettings{Labels: map[string]string{"a": "b"}}},
	} {
		got := tt.value
		for _, m := range NodegroupMembers() {
			if f := reflect.TypeFor[intent.NodegroupSettings]().FieldByIndex(m.index); f.Name == tt.member {
				v := m.Of(&got)
				v.Set(m.Complete(v))
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
