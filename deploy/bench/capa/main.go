// Command capa measures Cluster API Provider AWS beside weir: its own reconcilers of
// AWSMachinePool and AWSManagedMachinePool, as released, take the manifests that weir
// takes and make them real at weir's emulator, over HTTP, with their own AWS clients. It
// prints what that took until nothing was left to do, and what a pass at rest takes.
//
// It is a module of its own, so that nothing of CAPA's reaches weir, and CAPA runs with
// the libraries that its go.mod pins.
//
// What stands in for a management cluster is in this process: controller-runtime's fake
// client takes writes, reads come from a cache of typed objects (see cache.go), and a
// pool is reconciled again where a watch or a requeue would have it so. What the rest of
// a management cluster costs is so left out, in CAPA's favour: the API server, informers,
// leader election, log lines, events, and the client that CAPA makes for the workload
// cluster at each reconcile to look at nodes. There is no kubeconfig, so it gives up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options say what is measured.
type options struct {
	endpoint   string        // of the emulator
	region     string        // that it is asked for
	manifests  string        // a directory of MachinePools with their infrastructure pools
	eksCluster string        // that nodegroups join
	workers    int           // reconciles at a time
	settle     time.Duration // in place of CAPA's 15 and 30 seconds until it looks again
	rest       int           // passes at rest; the last one counts
}

func main() {
	var o options
	var out, name string
	flag.StringVar(&o.endpoint, "endpoint", "", "address of weir emulator, such as http://127.0.0.1:8345")
	flag.StringVar(&o.region, "region", "eu-west-1", "region that is asked for")
	flag.StringVar(&o.manifests, "manifests", "", "directory of manifests: MachinePools with AWSMachinePools or AWSManagedMachinePools")
	flag.StringVar(&o.eksCluster, "eks-cluster", "demo", "EKS cluster that nodegroups join")
	flag.IntVar(&o.workers, "workers", 5, "reconciles at a time; 5 is what CAPA has for pools")
	flag.DurationVar(&o.settle, "settle", 3*time.Second, "time that machines have to start before CAPA looks again; not counted")
	flag.IntVar(&o.rest, "rest", 2, "passes at rest; the last one is measured")
	flag.StringVar(&out, "out", "", "directory in which to write NAME-apply and NAME-rest: wall, user and system seconds, calls, resident MiB (default: write no files)")
	flag.StringVar(&name, "name", "capa", "NAME of these files")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, o, filepath.Join(out, name), out != ""); err != nil {
		fmt.Fprintln(os.Stderr, "capa:", err)
		stop()
		os.Exit(1)
	}
}

// measure prints what a run takes, and writes it to files if wanted, whose names begin with prefix.
func measure(ctx context.Context, o options, prefix string, files bool) error {
	quiet()
	r, err := run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("%-22s %9s %9s %9s %9s %9s %9s\n", fmt.Sprintf("CAPA, %d pools", r.pools), "calls", "writes", "wall s", "CPU s", "RSS MiB", "anon MiB")
	for _, p := range r.phases() {
		fmt.Printf("%-22s %9d %9d %9.2f %9.2f %9.0f %9.0f\n", p.label, p.calls(), p.writes(), p.wall.Seconds(), (p.user + p.system).Seconds(), p.resident, p.anonymous)
		if !files {
			continue
		}
		line := fmt.Sprintf("%.3f %.3f %.3f %d %.0f\n", p.wall.Seconds(), p.user.Seconds(), p.system.Seconds(), p.calls(), p.resident)
		if err := os.WriteFile(prefix+"-"+p.part, []byte(line), 0o600); err != nil {
			return err
		}
	}
	for _, p := range r.phases() {
		fmt.Printf("%s, calls by operation: %s\n", p.label, p.operations())
	}
	return nil
}

// report is what one run took.
type report struct {
	pools       int
	first, rest phase
}

func (r report) phases() []phase { return []phase{r.first, r.rest} }

// run makes the fleet of the manifests, and looks at it again until nothing is left to do.
func run(ctx context.Context, o options) (report, error) {
	if o.endpoint == "" || o.manifests == "" || o.workers < 1 || o.rest < 1 {
		return report{}, errors.New("-endpoint and -manifests are required, -workers and -rest are at least 1")
	}
	// CAPA's flag for endpoints has none for Auto Scaling: its clients take this one.
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": o.endpoint, "AWS_ACCESS_KEY_ID": "capa", "AWS_SECRET_ACCESS_KEY": "capa", "AWS_EC2_METADATA_DISABLED": "true"} {
		if err := os.Setenv(name, value); err != nil {
			return report{}, err
		}
	}
	ctx = logr.NewContext(ctx, logr.Discard())
	f, err := newFleet(ctx, o)
	if err != nil {
		return report{}, err
	}
	r := report{pools: len(f.pools)}
	r.first, err = f.converge(ctx)
	if err != nil {
		return report{}, fmt.Errorf("first convergence: %w", err)
	}
	r.first.part, r.first.label = "apply", "until converged"
	for range o.rest {
		if r.rest, err = f.pass(ctx); err != nil {
			return report{}, fmt.Errorf("pass at rest: %w", err)
		}
	}
	r.rest.part, r.rest.label = "rest", "pass at rest"
	return r, nil
}

// quiet ends what the libraries log: to format it is work that is not CAPA's alone.
func quiet() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
}
