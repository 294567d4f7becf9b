package partition_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/partition"
)

func TestOf(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "us-iso-east-1": "aws-iso", "us-isob-west-1": "aws-iso-b",
		"eu-isoe-west-1": "aws-iso-e", "us-isof-south-1": "aws-iso-f", "eusc-de-east-1": "aws-eusc",
		"cn-south-9": "aws-cn", "us-iso-north-7": "aws-iso", "eusc-de-west-2": "aws-eusc", "nowhere": "aws",
	} {
		if got := partition.Of(region).ID; got != want {
			t.Errorf("%s: %s, want %s", region, got, want)
		}
	}
}

// TestTheTableIsTheSDKs: after an update of the SDK, go generate writes both tables anew.
func TestTheTableIsTheSDKs(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2").Output()
	if err != nil {
		t.Skipf("the SDK's source is not here: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "internal/endpoints/awsrulesfn/partitions.json"))
	if err != nil {
		t.Skipf("the SDK's source is not here: %v", err)
	}
	var sdk struct {
		Partitions []struct {
			ID      string
			Outputs struct{ DNSSuffix, DualStackDNSSuffix string }
			Regions map[string]struct{}
		}
	}
	if err := json.Unmarshal(data, &sdk); err != nil {
		t.Fatal(err)
	}
	if len(sdk.Partitions) != len(partition.All()) {
		t.Errorf("the SDK has %d partitions, the table %d", len(sdk.Partitions), len(partition.All()))
	}
	for _, p := range sdk.Partitions {
		for region := range p.Regions {
			if strings.HasSuffix(region, "-global") {
				continue
			}
			got := partition.Of(region)
			if got.ID != p.ID || got.DNSSuffix != p.Outputs.DNSSuffix || got.DualStackSuffix != p.Outputs.DualStackDNSSuffix {
				t.Errorf("%s: %s %s %s, the SDK says %s %+v", region, got.ID, got.DNSSuffix, got.DualStackSuffix, p.ID, p.Outputs)
			}
		}
	}
	own, err := os.ReadFile("table.txt")
	if err != nil {
		t.Fatal(err)
	}
	emulator, err := os.ReadFile("../awsemu/world/partitions.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(own) != string(emulator) {
		t.Error("the emulator's table differs: go generate ./reconciler/partition")
	}
}
