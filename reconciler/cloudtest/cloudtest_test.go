package cloudtest_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/cloudtest"
	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Variables that have the suite run against something else as well.
const (
	// envEndpoint is the URL of any other endpoint.
	envEndpoint = "WEIR_CONTRACT_ENDPOINT"
	// envLacks lists the capabilities that it lacks, with commas; "moto" stands
	// for those of moto server.
	envLacks = "WEIR_CONTRACT_LACKS"
	// envMoto is 1 to start moto server, where it is installed.
	envMoto = "WEIR_CONTRACT_MOTO"
)

const region = "eu-west-1"

func TestContractEmulator(t *testing.T) {
	clock := awsemu.NewManualClock(time.Now())
	srv, err := awsemu.New(awsemu.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(srv)
	defer hs.Close()
	cloudtest.Run(t, cloudtest.Harness{Endpoint: hs.URL, Region: region, Advance: clock.Advance, Cluster: "demo"})
}

func TestContractEndpoint(t *testing.T) {
	url := os.Getenv(envEndpoint)
	if url == "" {
		t.Skip("set " + envEndpoint + " to the URL of an endpoint to test it")
	}
	lacks := map[cloudtest.Capability]string{}
	for name := range strings.SplitSeq(os.Getenv(envLacks), ",") {
		switch c := cloudtest.Capability(strings.TrimSpace(name)); {
		case c == "moto":
			lacks = cloudtest.Moto()
		case slices.Contains(cloudtest.Capabilities(), c):
			lacks[c] = "declared in " + envLacks
		case c != "":
			t.Fatalf("%s names the unknown capability %q; there are %v", envLacks, c, cloudtest.Capabilities())
		}
	}
	cloudtest.Run(t, cloudtest.Harness{Endpoint: url, Region: region, Lacks: lacks, Environment: os.Getenv("AWS_ACCESS_KEY_ID") != ""})
}

func TestContractMoto(t *testing.T) {
	if os.Getenv(envMoto) != "1" {
		t.Skip("set " + envMoto + "=1 to start moto server and test it")
	}
	path, err := exec.LookPath("moto_server")
	if err != nil {
		t.Skip("moto_server is not installed")
	}
	cloudtest.Run(t, cloudtest.Harness{Endpoint: startMoto(t, path), Region: region, Lacks: cloudtest.Moto()})
}

// startMoto starts moto server on a free port and ends it after the test.
func startMoto(t *testing.T, path string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "-H", "127.0.0.1", "-p", fmt.Sprint(port))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		// It was killed, which is an error to exec and none to the test.
		_ = cmd.Wait()
	})
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	for range 300 {
		if resp, err := client.Get(url + "/moto-api/"); err == nil {
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			return url
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("moto server did not start:\n%s", output.String())
	return ""
}
