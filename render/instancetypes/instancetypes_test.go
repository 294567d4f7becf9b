package instancetypes_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/instancetypes"
)

// TestTableIsThatOfTheSDK fails after an upgrade of the SDK that brings new
// instance types.
func TestTableIsThatOfTheSDK(t *testing.T) {
	listed := types.InstanceType("").Values()
	for _, name := range listed {
		if !instancetypes.Known(string(name)) {
			t.Fatalf("%s is not in the table: run go generate ./render/instancetypes", name)
		}
	}
	n := 0
	for _, f := range instancetypes.Families() {
		n += len(instancetypes.Sizes(f))
	}
	if n != len(listed) {
		t.Errorf("the table has %d types, the SDK %d: run go generate ./render/instancetypes", n, len(listed))
	}
}

func TestKnown(t *testing.T) {
	for name, want := range map[string]bool{
		"m5.large": true, "u-12tb1.112xlarge": true, "c7i-flex.large": true, "r8g.metal-24xl": true,
		"m5.largee": false, "m5": false, "m5.": false, ".large": false, "": false, "M5.large": false, "m5.large.x": false, "x99.large": false,
	} {
		if got := instancetypes.Known(name); got != want {
			t.Errorf("Known(%q) = %v", name, got)
		}
	}
}

func TestArchitectureByName(t *testing.T) {
	for name, want := range map[string]string{
		"a1.large": "arm64", "t4g.micro": "arm64", "m6g.large": "arm64", "c6gn.large": "arm64", "r8gd.large": "arm64", "x2gd.large": "arm64",
		"im4gn.large": "arm64", "is4gen.large": "arm64", "i8ge.large": "arm64", "hpc7g.4xlarge": "arm64", "g5g.xlarge": "arm64", "p6e-gb200.36xlarge": "arm64",
		"m5.large": "x86_64", "t3a.micro": "x86_64", "hpc7a.12xlarge": "x86_64", "g4dn.xlarge": "x86_64", "g5.xlarge": "x86_64", "g6e.xlarge": "x86_64",
		"gr6.4xlarge": "x86_64", "inf2.xlarge": "x86_64", "trn1.2xlarge": "x86_64", "p5en.48xlarge": "x86_64", "u-6tb1.56xlarge": "x86_64",
		"u7in-16tb.224xlarge": "x86_64", "vt1.3xlarge": "x86_64", "c7i-flex.large": "x86_64", "p6-b200.48xlarge": "x86_64", "t2.micro": "x86_64",
		"mac1.metal": "x86_64_mac", "mac2.metal": "arm64_mac", "mac2-m2pro.metal": "arm64_mac",
		"m99g.large": "", "": "", "m5g": "",
	} {
		if got := instancetypes.Architecture(name); got != want {
			t.Errorf("Architecture(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestEmulatorAgrees compares the architectures with those that the embedded AWS
// describes.
func TestEmulatorAgrees(t *testing.T) {
	srv, err := awsemu.New(awsemu.Options{Clock: awsemu.NewManualClock(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(srv)
	defer hs.Close()
	client := ec2.New(ec2.Options{Region: "eu-west-1", BaseEndpoint: aws.String(hs.URL), Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", ""),
		HTTPClient: httpbody.Client{Next: http.DefaultClient}})
	compared := 0
	for pages := ec2.NewDescribeInstanceTypesPaginator(client, &ec2.DescribeInstanceTypesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.InstanceTypes {
			compared++
			name, got := string(it.InstanceType), instancetypes.Architecture(string(it.InstanceType))
			if want := it.ProcessorInfo.SupportedArchitectures; len(want) != 1 || string(want[0]) != got {
				t.Errorf("%s: %q, the emulator says %v", name, got, want)
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d types were compared", compared)
	}
}

// TestRecordedDescriptionsAgree compares the architectures with what EC2
// described when the data of the moto library were recorded.
func TestRecordedDescriptionsAgree(t *testing.T) {
	recorded := recordedTypes(t)
	if len(recorded) < 500 {
		t.Fatalf("only %d types are recorded", len(recorded))
	}
	for name, d := range recorded {
		// Where 32-bit images run as well, i386 comes first.
		a := d.ProcessorInfo.SupportedArchitectures
		if len(a) == 0 {
			t.Errorf("%s has no architecture", name)
			continue
		}
		if got := instancetypes.Architecture(name); instancetypes.Known(name) && got != a[len(a)-1] {
			t.Errorf("%s: %q, EC2 says %v", name, got, a)
		}
	}
}

type described struct {
	ProcessorInfo struct{ SupportedArchitectures []string }
}

// recordedTypes reads moto's data, or skips the test where moto is not installed.
func recordedTypes(t *testing.T) map[string]described {
	t.Helper()
	const where = `import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("moto").origin))`
	out, err := exec.CommandContext(t.Context(), "python3", "-c", where).Output()
	if err != nil {
		t.Skip("the moto library is not installed")
	}
	base := filepath.Join(strings.TrimSpace(string(out)), "ec2", "resources", "instance_types.json")
	data, err := os.ReadFile(base)
	if err != nil {
		packed, err := os.ReadFile(base + ".gz")
		if err != nil {
			t.Skip("this moto has no data of instance types")
		}
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	var list map[string]described
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}
