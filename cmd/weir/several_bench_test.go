package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Figures of processes, over the engine that WEIR_SEVERAL_ENGINE names; with -benchtime 20x
// each has 20 rounds.

// BenchmarkTakeover kills the member that owns most, and pushes a commit: how long until the
// first write of a successor in each of its scopes.
func BenchmarkTakeover(b *testing.B) {
	c := newCrowd(b, crowdSize{servers: 1, regions: 20, pools: 1})
	c.begin()
	var all []time.Duration
	for b.Loop() {
		m, scopes := c.busiest()
		c.push()
		at := time.Now()
		m.kill()
		all = append(all, c.successors(m, scopes, at)...)
		m.start()
		c.await("the commit is applied", time.Minute, c.applied)
	}
	figures(b, "", all)
}

// BenchmarkHandOver tells the member that owns most to stop: how long until a successor owns
// each of its scopes, and for how long nobody did. A member that is to stop tells the others,
// and works on for 1.2 seconds, in which they hear of it.
func BenchmarkHandOver(b *testing.B) {
	c := newCrowd(b, crowdSize{servers: 1, regions: 20, pools: 1})
	c.begin()
	var all, gaps []time.Duration
	for b.Loop() {
		m, scopes := c.busiest()
		at := time.Now()
		m.signal(syscall.SIGTERM)
		c.await("the scopes have owners", time.Minute, func() string {
			for _, scope := range scopes {
				if _, to := c.handed(scope, m, at); to.IsZero() {
					return scope
				}
			}
			return ""
		})
		for _, scope := range scopes {
			from, to := c.handed(scope, m, at)
			all, gaps = append(all, to.Sub(at)), append(gaps, to.Sub(from))
		}
		m.reap()
		m.start()
		c.await("it is back", time.Minute, c.applied)
	}
	figures(b, "", all)
	figures(b, "unowned-", gaps)
}

// BenchmarkAtRest has a member with 200 scopes for a minute: what it takes of a processor
// and of memory, alone and as one of three.
func BenchmarkAtRest(b *testing.B) {
	for _, alone := range []bool{true, false} {
		b.Run(map[bool]string{true: "alone", false: "one of three"}[alone], func(b *testing.B) {
			c := newCrowd(b, crowdSize{servers: 10, regions: 20, pools: 1, resting: true, alone: alone})
			c.begin()
			time.Sleep(time.Minute) // what was begun is over, and scopes are shared out
			for b.Loop() {
				before := c.members[0].used()
				time.Sleep(time.Minute)
				after := c.members[0].used()
				b.ReportMetric((after.cpu-before.cpu).Seconds()/60*1000, "cpu-ms/s")
				b.ReportMetric(float64(after.anonymous)/(1<<20), "anonymous-MiB")
				b.ReportMetric(float64(after.resident)/(1<<20), "resident-MiB")
			}
		})
	}
}

func (c *crowd) begin() {
	for _, m := range c.members {
		m.start()
	}
	c.await("the first commit is applied", 3*time.Minute, c.applied)
}

// busiest is the member that owns most of what has an owner for a while, and what it owns.
func (c *crowd) busiest() (m *weirProcess, scopes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	owners := c.samples[len(c.samples)-1].owners
	for _, candidate := range c.members {
		var its []string
		for key, owner := range owners {
			if owner == "member-"+strings.ToLower(candidate.name) && strings.HasPrefix(key, "scope/") {
				its = append(its, key)
			}
		}
		if len(its) > len(scopes) {
			m, scopes = candidate, its
		}
	}
	if m == nil {
		c.t.Fatalf("nobody owns anything: %v", owners)
	}
	return m, scopes
}

// successors waits until others than a member have written in each scope, and says how long
// after a time they began to.
func (c *crowd) successors(but *weirProcess, scopes []string, at time.Time) []time.Duration {
	first := map[string]time.Duration{}
	c.await("the scopes have successors", time.Minute, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, a := range c.attempts {
			if first[a.scope] == 0 && a.member != but.name && a.at.After(at) {
				first[a.scope] = a.at.Sub(at)
			}
		}
		for _, scope := range scopes {
			if first[scope] == 0 {
				return scope
			}
		}
		return ""
	})
	var out []time.Duration
	for _, scope := range scopes {
		out = append(out, first[scope])
	}
	return out
}

// handed is when a member was seen to own a scope last after a time, and when somebody else
// was seen to own it first.
func (c *crowd) handed(scope string, by *weirProcess, at time.Time) (from, to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from = at
	for _, s := range c.samples {
		switch o := s.owners[scope]; {
		case s.received.Before(at), o == "":
		case o == "member-"+strings.ToLower(by.name):
			from = s.received
		default:
			return from, s.received
		}
	}
	return from, time.Time{}
}

// figures reports the middle of durations, and the one that one of a hundred exceeds.
func figures(b *testing.B, what string, all []time.Duration) {
	slices.Sort(all)
	b.ReportMetric(all[len(all)/2].Seconds(), what+"p50-s")
	b.ReportMetric(all[(len(all)*99)/100].Seconds(), what+"p99-s")
	b.ReportMetric(all[len(all)-1].Seconds(), what+"max-s")
	b.ReportMetric(float64(len(all)), "samples")
}
