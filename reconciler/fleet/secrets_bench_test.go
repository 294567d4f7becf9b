package fleet

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/sops/sopstest"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/snapshot"
)

// indexed is a tree in memory whose directories are found as fast as in a real one.
type indexed struct {
	tree.Map
	entries map[string]tree.Entry
}

func newIndexed(t testing.TB, m tree.Map) indexed {
	out := indexed{Map: m, entries: map[string]tree.Entry{}}
	for p := range m {
		e, err := m.Lookup(p)
		if err != nil {
			t.Fatal(err)
		}
		for out.entries[p] = e; p != "."; {
			p = path.Dir(p)
			out.entries[p] = tree.Entry{Name: path.Base(p), Mode: tree.Dir, Size: -1}
		}
	}
	return out
}

// Lookup implements tree.Tree.
func (t indexed) Lookup(p string) (tree.Entry, error) {
	if e, ok := t.entries[p]; ok {
		return e, nil
	}
	return tree.Entry{}, &fs.PathError{Op: "lookup", Path: p, Err: fs.ErrNotExist}
}

// secretOverlays are overlays of one base, each with a Secret of as many values that
// its pool boots from, encrypted or not.
func secretOverlays(t testing.TB, key sopstest.Key, overlays, values int, encrypted bool) tree.Tree {
	t.Helper()
	files := tree.Map{
		"base/kustomization.yaml": "resources: [pool.yaml]\n",
		"base/pool.yaml":          "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: demo}\n---\n" + fleettest.Pool("web", `dataSecretName: ""`, "dataSecretName: boot"),
	}
	for i := range overlays {
		fields := []sopstest.Field{{Path: "apiVersion", Value: "v1", Plain: true}, {Path: "kind", Value: "Secret", Plain: true}, {Path: "metadata.name", Value: "boot", Plain: true}}
		plain := "apiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData:\n"
		for n := range values {
			name, value := fmt.Sprintf("value%d", n), fmt.Sprintf("s3cr3t-%d-of-overlay-%d", n, i)
			if n == 0 {
				name = "value"
			}
			fields = append(fields, sopstest.Field{Path: "stringData." + name, Value: value})
			plain += "    " + name + ": " + value + "\n"
		}
		o := fmt.Sprintf("o/%04d/", i)
		files[o+"kustomization.yaml"] = fmt.Sprintf("namespace: n%d\n", i) + "resources: [../../base, secret.yaml]\npatches: [{path: size.yaml}]\nconfigurations: [names.yaml]\n"
		files[o+"names.yaml"] = "nameReference:\n- {kind: Secret, version: v1, fieldSpecs: [{kind: MachinePool, path: spec/template/spec/bootstrap/dataSecretName}]}\n" +
			"- {kind: AWSMachinePool, fieldSpecs: [{kind: MachinePool, path: spec/template/spec/infrastructureRef/name}]}\n"
		files[o+"size.yaml"] = fmt.Sprintf("apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: web}\nspec: {maxSize: %d}\n", i%50+3)
		if files[o+"secret.yaml"] = plain; encrypted {
			files[o+"secret.yaml"] = sopstest.YAML(t, key, fields...)
		}
	}
	return newIndexed(t, files)
}

// cpuTime is what the process has computed.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStartWithSecrets composes a fleet for the first time: with its values in
// plain text, and with all of them encrypted. The second is rendered twice, and all of
// its values are kept out of what is shown.
func BenchmarkStartWithSecrets(b *testing.B) {
	key := sopstest.Age(b)
	for _, size := range []struct{ overlays, values int }{{1000, 3}, {600, 40}} {
		var plain time.Duration
		for _, encrypted := range []bool{false, true} {
			b.Run(fmt.Sprintf("overlays=%d/values=%d/encrypted=%t", size.overlays, size.values, encrypted), func(b *testing.B) {
				files := secretOverlays(b, key, size.overlays, size.values, encrypted)
				var spent time.Duration
				n := 0
				for b.Loop() {
					h := newHarness(b, fmt.Sprintf("- {name: '{1}', path: 'o/*', region: eu-west-1, ageKeyFiles: [%q]}\n", key.IdentityFile(b)))
					h.fleet.o.Secrets = &redact.Registry{}
					before := cpuTime(b)
					_, targets := h.compose(View{Snapshot: snapshot.Snapshot{Source: "s", Revision: "r1", Tree: files}})
					spent += cpuTime(b) - before
					n++
					if len(targets) != size.overlays {
						b.Fatalf("%d targets", len(targets))
					}
					for name, d := range targets {
						if !d.Whole || len(d.Set.Pools) != 1 || !strings.Contains(d.Set.Pools[0].LaunchTemplate.UserData.Text, "s3cr3t") {
							b.Fatalf("%s: %v %v", name, d.Err, d.Diagnostics)
						}
					}
				}
				mean := spent / time.Duration(n)
				if b.ReportMetric(float64(mean.Microseconds())/float64(size.overlays), "cpu-µs/overlay"); !encrypted {
					plain = mean
				} else if plain > 0 {
					b.ReportMetric(mean.Seconds()/plain.Seconds(), "×plain")
				}
			})
		}
	}
}
