package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestPoolFilter(t *testing.T) {
	drifted := func(p *plan.PoolStatus) {
		p.Conditions = append(p.Conditions, plan.Condition{Type: "Drifted", Status: "True"})
	}
	b := testBoard()
	held := statustest.Report("c", statustest.Pool("c", "waits", statustest.Unconverged(plan.PhaseRunning), statustest.Sized(2, 2)))
	waits := statustest.StepFor(step.Update, step.AutoScalingGroup, "default/waits", "c-waits")
	waits.Held = step.HeldWindow
	b.Targets.Report(t.Context(), statustest.With(held, step.Held, waits))
	b.Targets.Report(t.Context(), statustest.Report("a", statustest.Pool("a", "web", statustest.Sized(1, 4), statustest.Unconverged(plan.PhaseScalingUp)), statustest.Pool("a", "batch", statustest.Sized(9, 9)), statustest.Pool("a", "gpu", statustest.Managed)))
	bad := statustest.Report("b", statustest.Pool("b", "web", statustest.Failed("x", "y"), statustest.Sized(0, 1)), statustest.Pool("b", "odd", drifted, statustest.Unconverged(plan.PhaseRunning)))
	bad.Err = errors.New("denied")
	b.Targets.Report(t.Context(), bad)
	for query, want := range map[string][]string{
		"":                             {"b/web", "a/web", "b/odd", "c/waits", "a/batch", "a/gpu"},
		"sort=name":                    {"a/batch", "a/gpu", "b/odd", "c/waits", "a/web", "b/web"},
		"sort=target":                  {"a/batch", "a/gpu", "a/web", "b/odd", "b/web", "c/waits"},
		"sort=size":                    {"a/batch", "a/web", "a/gpu", "b/odd", "c/waits", "b/web"},
		"sort=missing":                 {"a/web", "b/web", "a/batch", "a/gpu", "b/odd", "c/waits"},
		"q=WEB":                        {"b/web", "a/web"},
		"q=default/web":                {"b/web", "a/web"},
		"q=default%2Fnone":             nil,
		"target=a&sort=name":           {"a/batch", "a/gpu", "a/web"},
		"target=nosuch":                nil,
		"state=failing":                {"b/web", "b/odd"},
		"phase=ScalingUp":              {"a/web"},
		"kind=AWSManagedMachinePool":   {"a/gpu"},
		"only=problem":                 {"b/web"},
		"only=moving&sort=name":        {"b/odd", "a/web"},
		"only=drift":                   {"b/odd"},
		"only=held":                    {"c/waits"},
		"only=nosuch":                  nil,
		"only=problem&target=a":        nil,
		"sort=nosuch&q=batch&page=-3":  {"a/batch"},
		"page=99999999999999999999999": {"b/web", "a/web", "b/odd", "c/waits", "a/batch", "a/gpu"},
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		w := &web{views: views{current: b}}
		rows, _, _ := w.poolRows(poolItems(b.Targets.All()), readPoolFilter(q), "/pools")
		var got []string
		for _, r := range rows {
			got = append(got, r.Target+"/"+r.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

// A filter is what its own query says, so that every link keeps what was chosen.
func TestPoolFilterKeepsItsQuery(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		f := poolFilter{
			Text: strings.TrimSpace(text.Draw(t, "q")), Target: text.Draw(t, "target"), State: text.Draw(t, "state"), Phase: text.Draw(t, "phase"),
			Kind: text.Draw(t, "kind"), Only: text.Draw(t, "only"), Sort: text.Draw(t, "sort"), Page: rapid.IntRange(1, 99).Draw(t, "page"),
		}
		u, err := url.Parse(f.link("/pools"))
		if err != nil {
			t.Fatal(err)
		}
		if got := readPoolFilter(u.Query()); got != f {
			t.Fatalf("%+v became %+v", f, got)
		}
	})
}

func TestContainsIgnoresCase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, part := rapid.StringMatching(`[a-cA-C/]{0,8}`).Draw(t, "s"), rapid.StringMatching(`[a-cA-C/]{0,3}`).Draw(t, "part")
		if got, want := contains(s, part), strings.Contains(strings.ToLower(s), strings.ToLower(part)); got != want {
			t.Fatalf("contains(%q, %q) is %t", s, part, got)
		}
	})
}

// Every pool is on one page of the list and on one only.
func TestPagesOfAListShowEachPoolOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total, size := rapid.IntRange(0, 500).Draw(t, "total"), rapid.IntRange(1, 120).Draw(t, "size")
		var seen []int
		for page := 1; ; page++ {
			from, to, at := window(page, size, total)
			if at != page {
				break // there are no more
			}
			for i := from; i < to; i++ {
				seen = append(seen, i)
			}
			p := pagerOf(from, to, total, at, "pool", func(n int) string { return fmt.Sprint(n) })
			if (p.Next != "") != (to < total) || (p.Prev != "") != (page > 1) {
				t.Fatalf("page %d of %d leads to %+v", page, total, p)
			}
		}
		if len(seen) != total || !slices.IsSorted(seen) {
			t.Fatalf("%d of %d are shown", len(seen), total)
		}
	})
}

func TestPictures(t *testing.T) {
	p := statustest.Pool("t", "web", statustest.Sized(3, 4))
	p.MinReplicas, p.MaxReplicas = 2, 8
	if diff := cmp.Diff(level{
		Words: "3 of 4 ready, at least 2, at most 8", Mark: "converged", Ready: "60", Wanted: "80", Least: "40", MissingAt: "60", Missing: "20",
		Cells: "M20 0v20M40 0v20M60 0v20M80 0v20M100 0v20M120 0v20M140 0v20",
	}, poolLevel(p, report.Converged)); diff != "" {
		t.Errorf("level (-want +got):\n%s", diff)
	}
	p.ReadyReplicas, p.DesiredReplicas, p.MinReplicas, p.MaxReplicas = 0, 0, 0, 0
	if l := poolLevel(p, report.Converged); l.Words != "0 of 0 ready" || l.Ready != "0" || l.Wanted != "0" || l.Cells != "" {
		t.Errorf("a pool of nothing is %+v", l)
	}
	// More than is allowed still fits into the picture.
	p.ReadyReplicas, p.MaxReplicas = 9000, 5
	if l := poolLevel(p, report.Converged); l.Ready != "160" || l.Cells != "" {
		t.Errorf("a pool that is too large is %+v", l)
	}
	m := mosaicOf(map[string]int{"converged": 500, "failing": 2, "moving": 1})
	if m.Words != "2 failing, 1 moving, 500 converged" || m.More != 503-mostSigns || m.Parts[0].Path != "M1 5l4-4 4 4-4 4zM12 5l4-4 4 4-4 4z" || len(m.Parts) != 3 {
		t.Errorf("the mosaic is %s, and %d more: %v", m.Words, m.More, m.Parts[0])
	}
}

// large is a fleet of ten thousand pools.
func large(t testing.TB, targets int) *current.State {
	b := testBoard()
	for i := range targets {
		r := statustest.Report(fmt.Sprintf("cluster-%04d", i))
		for k := range 10_000 / targets {
			opts := []statustest.PoolOption{statustest.Sized(5, 5)}
			switch {
			case (i+k)%97 == 0:
				opts = append(opts, statustest.Failed("rollout-failed", "the instance refresh ended as Failed"))
			case (i+k)%31 == 0:
				opts = append(opts, statustest.Rolling(40, 3))
			}
			r.Pools = append(r.Pools, statustest.Pool(r.Target, fmt.Sprintf("pool-%04d", k), opts...))
		}
		b.Targets.Report(t.Context(), r)
	}
	return b
}

// largest are the pages that show most of a large fleet.
var largest = []string{"/", "/?q=cluster", "/?only=problem", "/?sort=missing", "/pools", "/pools?q=pool-00&sort=size", "/targets/cluster-0000", "/activity"}

func TestPagesOfALargeFleetStaySmall(t *testing.T) {
	const most = 500 << 10
	for _, targets := range []int{1000, 100, 1} {
		b := large(t, targets)
		for _, path := range largest {
			rec := get(t, b, path)
			if rec.Code != http.StatusOK || rec.Body.Len() > most {
				t.Errorf("%s with %d targets gives %d and %d KiB, over %d", path, targets, rec.Code, rec.Body.Len()>>10, most>>10)
			}
		}
	}
}

func BenchmarkPages(b *testing.B) {
	for _, targets := range []int{1000, 100, 1} {
		h := Handler(large(b, targets), Options{})
		for _, path := range append([]string{"/api/v1/pools", "/api/v1/targets"}, largest...) {
			b.Run(fmt.Sprintf("targets=%d%s", targets, path), func(b *testing.B) {
				b.ReportAllocs()
				size, before := 0, cpu(b)
				for b.Loop() {
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
					size = rec.Body.Len()
				}
				b.ReportMetric(float64(size)/1024, "KiB")
				b.ReportMetric(float64((cpu(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// cpu is the time that processors have worked for this process.
func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
