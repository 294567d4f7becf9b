package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// BenchmarkAccounts has a daemon keep accounts of a hundred pools each: what a pool costs its
// process in CPU, at first and in each pass at rest, and in memory. AWS is another process,
// and has the calls counted: a pass at rest reads one page of groups of each account. The cost
// of a pool is to be the same for 100 and for 10,000.
func BenchmarkAccounts(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("accounts=%d", n), func(b *testing.B) {
			d := newAccountsDaemon(b, n)
			pools := float64(n * poolsOfAccount)
			began := d.process.used()
			d.await(b)
			converged := d.process.used()
			time.Sleep(time.Minute) // what was begun is over, and memory is given back
			for b.Loop() {
				before, reads := d.process.used(), d.reads()
				time.Sleep(2 * time.Minute)
				after := d.process.used()
				passes := float64(d.reads()-reads) / float64(n)
				if passes < 3 {
					b.Fatalf("%g passes in two minutes", passes)
				}
				b.ReportMetric(passes, "passes")
				b.ReportMetric((after.cpu-before.cpu).Seconds()*1e6/pools/passes, "cpu-µs/pool")
				b.ReportMetric(float64(after.anonymous)/(1<<20), "anonymous-MiB")
				if wrote := d.writes(); wrote != 2*n*poolsOfAccount {
					b.Errorf("%d writes, want two for each pool", wrote)
				}
			}
			b.ReportMetric((converged.cpu-began.cpu).Seconds()*1e3/pools, "first-cpu-ms/pool")
		})
	}
}

const poolsOfAccount = 100

// accountsDaemon is a daemon of many accounts, and their AWS.
type accountsDaemon struct {
	accounts int
	aws      *awsemu.Server
	process  *weirProcess
}

func newAccountsDaemon(b *testing.B, accounts int) *accountsDaemon {
	b.Helper()
	aws, err := awsemu.New(awsemu.Options{Timings: quickTimings()})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(aws)
	b.Cleanup(server.Close)
	repo, files, targets := sourcetest.New(b), map[string]string{}, ""
	for i := range accounts {
		dir := fmt.Sprintf("t%03d", i)
		var pools strings.Builder
		for k := range poolsOfAccount {
			fmt.Fprintf(&pools, severalPool, fmt.Sprintf("pool-%02d", k), "m5.large")
		}
		files[dir+"/pools.yaml"], files[dir+"/kustomization.yaml"] = pools.String(), "resources: [pools.yaml]\n"
		targets += fmt.Sprintf("- {name: %s, source: pools, path: %[1]s, region: us-east-1, roleARN: 'arn:aws:iam::%012d:role/weir'}\n", dir, 100000000000+i)
	}
	repo.Write(files)
	repo.Commit("pools")
	address, err := ports.Address()
	if err != nil {
		b.Fatal(err)
	}
	c := &crowd{t: b, size: crowdSize{pools: poolsOfAccount}, repo: repo}
	m := &weirProcess{crowd: c, name: "A", dir: b.TempDir(), page: "http://" + address}
	text := fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: Config
instance: accounts
stateDir: state
listen: %s
interval: 20s
aws: {endpoint: %q}
limits: {pools: 20000}
sources: [{name: pools, url: %q, interval: 20s}]
targets:
%s`, address, server.URL, repo.URL(), targets)
	if err := os.WriteFile(filepath.Join(m.dir, "weir.yaml"), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.kill)
	m.start()
	return &accountsDaemon{accounts: accounts, aws: aws, process: m}
}

func (d *accountsDaemon) reads() int {
	return d.aws.CallCounts()["autoscaling:DescribeAutoScalingGroups"]
}

func (d *accountsDaemon) writes() (n int) {
	for call, times := range d.aws.CallCounts() {
		if _, op, _ := strings.Cut(call, ":"); !reading.MatchString(op) && op != "RunInstances" { // a dry run, made once
			n += times
		}
	}
	return n
}

// await waits until the page says that all has converged.
func (d *accountsDaemon) await(b *testing.B) {
	b.Helper()
	missing := "no answer"
	for deadline := time.Now().Add(20 * time.Minute); missing != ""; time.Sleep(2 * time.Second) {
		if time.Now().After(deadline) {
			b.Fatal(missing, d.process.lastLines(5))
		}
		missing = d.missing()
	}
}

// missing goes by the metrics, which are little to write, also where ten thousand pools are
// being made.
func (d *accountsDaemon) missing() string {
	r, err := http.Get(d.process.page + "/metrics") //nolint:noctx // a daemon of this benchmark
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}
	if n := len(targetConverged.FindAll(text, -1)); n != d.accounts {
		return fmt.Sprintf("%d of %d targets have converged", n, d.accounts)
	}
	return ""
}

var targetConverged = regexp.MustCompile(`(?m)^weir_target_converged\{.*\} 1$`)
