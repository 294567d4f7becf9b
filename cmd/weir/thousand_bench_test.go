package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/ports"
	examplerepo "github.com/weir-gitops/weir/example-repo"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// BenchmarkThousandTargets has a daemon keep a thousand overlays of the example repository,
// each with a prefix, a namespace, labels and a patch of its own, and with a group: a cluster
// may have 30 nodegroups. It measures a start with nothing in AWS, the start after that, what the daemon and
// the process of its builds hold at rest, and pushes of one pool each.
func BenchmarkThousandTargets(b *testing.B) {
	d := newThousandDaemon(b)
	d.process.start()
	d.ready(b)
	d.await(b, 20*time.Minute)
	made := d.process.tree()
	var ready, whole, cpu []float64
	for range starts {
		d.process.signal(syscall.SIGTERM)
		d.process.reap()
		began := time.Now()
		d.process.start()
		ready = append(ready, d.ready(b).Seconds())
		for d.process.get("/readyz", nil) != nil {
			if time.Since(began) > 5*time.Minute {
				b.Fatal("no whole pass", d.process.lastLines(5))
			}
			time.Sleep(20 * time.Millisecond)
		}
		whole = append(whole, time.Since(began).Seconds())
		cpu = append(cpu, d.process.tree().cpu.Seconds())
		d.await(b, time.Minute)
	}
	time.Sleep(90 * time.Second) // what was begun is over, and memory is given back
	at := d.process.tree()
	var final []float64
	for b.Loop() {
		for i := range pushes {
			time.Sleep(pause + rand.N(300*time.Millisecond))
			final = append(final, d.push(b, i).Seconds()*1000)
		}
	}
	pushed := d.process.tree()
	b.ReportMetric(made.cpu.Seconds(), "made-cpu-s") // behind Loop, which forgets what was reported before
	b.ReportMetric(share(ready, 50), "ready-s")
	b.ReportMetric(share(whole, 50), "whole-s")
	b.ReportMetric(share(cpu, 50), "whole-cpu-s")
	b.ReportMetric(float64(at.anonymous)/(1<<20), "anonymous-MiB")
	b.ReportMetric((pushed.cpu-at.cpu).Seconds()*1000/float64(len(final)), "cpu-ms/push")
	for _, p := range []int{50, 99, 100} {
		b.ReportMetric(share(final, p), fmt.Sprintf("p%d-ms", p))
	}
}

const (
	thousand = 1000
	starts   = 3
	pushes   = 100
	// pause is what AWS's bucket of reads takes to fill again after the ten pages of a list: the look after a push waits for
	// that, so that another commit would find enough.
	pause = 2 * time.Second
)

// share is the value below which so many of a hundred are.
func share(values []float64, percent int) float64 {
	slices.Sort(values)
	return values[(len(values)-1)*percent/100]
}

// thousandDaemon is a daemon of many targets, their AWS and their forge.
type thousandDaemon struct {
	aws     *awsemu.Server
	forge   *openForge
	repo    *sourcetest.Repo
	process *weirProcess
	pushed  int
}

// overlayFiles are the files of one of the targets.
func overlayFiles(i, size int) map[string]string {
	dir, stage := fmt.Sprintf("fleet/c%03d", i), []string{"dev", "prod"}[i%2]
	return map[string]string{
		dir + "/kustomization.yaml": fmt.Sprintf("namePrefix: c%03d-\nnamespace: team%d\nresources: [../../stages/%s]\npatches: [{path: size.yaml}]\nlabels: [{pairs: {cluster: c%03d}}]\n", i, i%10, stage, i),
		dir + "/size.yaml":          fmt.Sprintf("apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: \"${CLUSTER_NAME}-spot-workers\", namespace: fleet}\nspec:\n  maxSize: %d\n  additionalTags: {cluster: c%03d}\n", size, i),
	}
}

func newThousandDaemon(b *testing.B) *thousandDaemon {
	b.Helper()
	aws, err := awsemu.New(awsemu.Options{Timings: quickTimings(), Quotas: map[string]int{"auto-scaling-groups": 5 * thousand}})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(aws)
	b.Cleanup(server.Close)
	d := &thousandDaemon{aws: aws, forge: newOpenForge(b), repo: sourcetest.New(b)}
	for _, dir := range []string{"base", "pools", "stages"} {
		if err := fs.WalkDir(examplerepo.Files, dir, func(p string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := fs.ReadFile(examplerepo.Files, p)
			d.repo.Write(map[string]string{p: string(content)})
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
	d.repo.Write(map[string]string{
		"stages/dev/kustomization.yaml":  "resources: [../../base/eks-cluster, ../../pools/spot]\n",
		"stages/prod/kustomization.yaml": "resources: [../../base/eks-cluster, ../../pools/spot]\npatches: [{path: awsmachinepool-patch.yaml}]\n",
	})
	for i := range thousand {
		d.repo.Write(overlayFiles(i, 10))
	}
	d.repo.Commit("a fleet")
	address, err := ports.Address()
	if err != nil {
		b.Fatal(err)
	}
	d.process = &weirProcess{crowd: &crowd{t: b, repo: d.repo}, name: "A", dir: b.TempDir(), page: "http://" + address}
	for name, text := range map[string]string{"token": "s3cret-token\n", "weir.yaml": fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: Config
instance: fleet
stateDir: state
listen: %s
interval: 1m
aws: {endpoint: %q}
sources: [{name: fleet, url: %q, ref: {branch: main}, interval: 50ms}]
forges: [{type: gitea, url: %s/platform/fleet, tokenFile: token}]
targets:
- {name: '{1}', path: 'fleet/*', region: us-east-1, vars: {CLUSTER_NAME: demo, AWS_REGION: us-east-1, KUBERNETES_VERSION: v1.34.1}}
`, address, server.URL, d.repo.URL(), d.forge.url)} {
		if err := os.WriteFile(filepath.Join(d.process.dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(d.process.kill)
	return d
}

// ready waits until the page answers, and gives how long that took.
func (d *thousandDaemon) ready(b *testing.B) time.Duration {
	b.Helper()
	began := time.Now()
	for {
		if r, err := http.Get(d.process.page + "/healthz"); err == nil { //nolint:noctx // a daemon of this benchmark
			_ = r.Body.Close()
			return time.Since(began)
		}
		if time.Since(began) > time.Minute {
			b.Fatal("the page does not answer", d.process.lastLines(5))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// await waits until all targets have converged.
func (d *thousandDaemon) await(b *testing.B, most time.Duration) {
	b.Helper()
	all := accountsDaemon{accounts: thousand, process: d.process}
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		missing := all.missing()
		if missing == "" {
			return
		}
		if time.Since(began) > most {
			b.Fatal(missing, d.process.lastLines(5))
		}
	}
}

// push changes the size of one target's group, and waits for the verdict.
func (d *thousandDaemon) push(b *testing.B, i int) time.Duration {
	b.Helper()
	d.pushed++
	d.repo.Write(overlayFiles(i*7%thousand, 10+d.pushed))
	began := time.Now()
	sha := d.repo.Commit("a push")
	for state := ""; state != "success"; state, _ = d.forge.last(sha, "fleet/apply") {
		if time.Since(began) > time.Minute || state == "failure" {
			b.Fatal("no verdict: ", state, d.process.lastLines(5))
		}
		time.Sleep(2 * time.Millisecond)
	}
	return time.Since(began)
}
