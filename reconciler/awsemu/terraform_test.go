package awsemu_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// terraformModule is the module that the documentation shows.
func terraformModule(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../deploy/docs/guides/emulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```hcl\n")
	module, _, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatal("the page shows no module")
	}
	return module
}

// TestTerraform has Terraform or OpenTofu as they are run the documented module: it
// applies, wants nothing more, changes, wants nothing more, and destroys. The provider is
// looked for below WEIR_TEST_TERRAFORM_MIRROR, a directory as `terraform providers mirror`
// writes it; nothing is downloaded.
func TestTerraform(t *testing.T) {
	mirror := os.Getenv("WEIR_TEST_TERRAFORM_MIRROR")
	if mirror == "" {
		t.Skip("set WEIR_TEST_TERRAFORM_MIRROR to a directory with the AWS provider")
	}
	program, err := exec.LookPath("terraform")
	if err != nil {
		if program, err = exec.LookPath("tofu"); err != nil {
			t.Skip("neither terraform nor tofu is installed")
		}
	}
	e := start(t, awsemu.Options{Clock: wallClock{}})
	hs := httptest.NewServer(e.srv)
	defer hs.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.tf": terraformModule(t),
		"tfrc":    "disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror { path = \"" + mirror + "\" }\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, program, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "tfrc"), "TF_IN_AUTOMATION=1", "TF_INPUT=0",
			"TF_VAR_endpoint="+hs.URL, "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "AWS_EC2_METADATA_DISABLED=true")
		out, err := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != want {
			t.Fatalf("%s %v ended with %d, want %d: %v\n%s", program, args, code, want, err, out)
		}
	}
	const nothing, something = 0, 2
	run(0, "init", "-no-color")
	run(0, "apply", "-auto-approve", "-no-color")
	run(nothing, "plan", "-detailed-exitcode", "-no-color")
	group := func() (desired, most int32) {
		t.Helper()
		g := e.read("web")
		return aws.ToInt32(g.DesiredCapacity), aws.ToInt32(g.MaxSize)
	}
	if _, most := group(); most != 3 {
		t.Errorf("at most %d machines", most)
	}
	if n := len(must(e.autoscaling().DescribePolicies(ctx, &autoscaling.DescribePoliciesInput{}))(t).ScalingPolicies); n != 1 {
		t.Errorf("%d policies", n)
	}
	run(something, "plan", "-detailed-exitcode", "-no-color", "-var", "max_size=4")
	run(0, "apply", "-auto-approve", "-no-color", "-var", "max_size=4")
	run(nothing, "plan", "-detailed-exitcode", "-no-color", "-var", "max_size=4")
	if _, most := group(); most != 4 {
		t.Errorf("after the change at most %d machines", most)
	}
	run(0, "destroy", "-auto-approve", "-no-color")
	if left := must(e.ec2().DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{}))(t).LaunchTemplates; len(left) != 0 {
		t.Errorf("launch templates are left: %+v", left)
	}
}

// wallClock is the time of the machine, by which Terraform waits.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }
