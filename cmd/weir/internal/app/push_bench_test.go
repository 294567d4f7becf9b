package app

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/giteatest"
)

// BenchmarkPushToFinalStatus is the time from a push that changes one pool in a
// repository of a thousand targets, without a rollout, until the verdict is on the
// forge: with a forge in this process and a repository that is polled each 50 ms,
// and with the Gitea that WEIR_TEST_GITEA names, by its webhook. It is told of the median, of what 99 of 100 take, and of the longest:
// go test -bench PushToFinalStatus -benchtime 200x.
func BenchmarkPushToFinalStatus(b *testing.B) {
	b.Run("local", func(b *testing.B) {
		w := newWorld(b, manyAWS(benchTargets))
		p := &pusher{
			push: func(files map[string]string) string {
				w.repo.Write(files)
				return w.repo.Commit("a push")
			},
			state: func(sha string) string {
				state, _ := w.forge.last(sha, "fleet/apply")
				return state
			},
		}
		first := p.push(manyPools(benchTargets))
		a, stop := w.startConfig(w.many(w.config), nil)
		defer stop()
		p.measure(b, a, first)
	})
	b.Run("gitea", func(b *testing.B) {
		g := newGiteaWorld(b, giteatest.New(b), "pusher", manyAWS(benchTargets))
		p := &pusher{
			push: func(files map[string]string) string {
				g.clone.Write(files)
				return g.clone.Push("main", "a push")
			},
			state: func(sha string) string { return g.repo.Last(sha, "fleet/apply").State },
		}
		first := p.push(manyPools(benchTargets))
		p.measure(b, g.run(g.many(g.config), "push"), first)
	})
}

const benchTargets = 1000

// pusher pushes files, giving the commit, and reads the aggregate's state.
type pusher struct {
	push  func(files map[string]string) string
	state func(sha string) string
}

// measure waits until all is at rest at the first commit, and then pushes.
func (p *pusher) measure(b *testing.B, a *App, first string) {
	atRest := func(sha string) {
		waitLong(b, "rest", func() bool { return p.state(sha) == "success" && a.gen.Load().publisher.commits.Pending() == 0 })
	}
	atRest(first)
	var pushed, seen, final []time.Duration
	n := 0
	for b.Loop() {
		name := manyName(n % benchTargets)
		n++
		file := "overlays/" + name + "/pool.yaml"
		began := time.Now()
		sha := p.push(map[string]string{file: pool(name, "m5.large", 3+n)})
		pushed = append(pushed, time.Since(began))
		waitLong(b, "the source", func() bool { return a.gen.Load().followers["pools"].At() == sha })
		seen = append(seen, time.Since(began))
		waitLong(b, "the verdict", func() bool { return p.state(sha) == "success" })
		final = append(final, time.Since(began))
		b.StopTimer()
		atRest(sha)
		b.StartTimer()
	}
	b.ReportMetric(milliseconds(pushed), "pushed-ms")
	b.ReportMetric(milliseconds(seen), "seen-ms")
	b.ReportMetric(milliseconds(final), "final-ms")
	b.ReportMetric(float64(final[(len(final)-1)*99/100].Microseconds())/1000, "final-p99-ms")
	b.ReportMetric(float64(final[len(final)-1].Microseconds())/1000, "final-max-ms")
}

// milliseconds is the median. It sorts.
func milliseconds(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}

func waitLong(b *testing.B, what string, done func() bool) {
	b.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("waiting for %s", what)
		}
	}
}
