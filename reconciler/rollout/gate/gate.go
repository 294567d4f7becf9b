// Package gate answers the gates of rollouts: whether the next share or wave may start.
//
// An answer is pass, fail or unknown, with a sentence and the time of its facts. Unknown makes the
// rollout wait and never stops it: a failed read is neither a good nor a bad sign. Work in progress
// is unknown as well, with a description of what is missing. A fact from before the start of the
// share does not count.
//
// There are four kinds:
//
//   - nodesReady: the machines of the new hash are Ready nodes of the workload cluster, each
//     within a time. If weir has no access to the cluster, a machine in service counts as
//     ready, and the answer mentions that, unless the gate requires nodes.
//   - failedActivities: scaling activities that failed since the share began.
//   - cloudWatchAlarms: alarms in the account and region of each pool.
//   - prometheus: each value of a query is within bounds. No value is unknown, as it is
//     unclear whether nothing is wrong or nothing is measured. A query that looks for faults
//     should end in `or vector(0)`.
//
// [Judge], a pure function, decides the first three from the facts that owners of accounts and
// regions report, as only owners have access there. For the fourth, the conductor queries the
// providers in the configuration ([Asker]).
package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
)

const (
	// named is the number of items that a sentence lists.
	named = 3
	// longest is the number of characters of a foreign text that a sentence may quote.
	longest = 300
)

// finding is the verdict on one pool, alarm or value.
type finding struct {
	verdict rollout.Verdict
	what    string
	at      time.Time
}

// worst combines findings: a failed finding decides, else an unknown one. passed is the text if all
// pass. The answer is as old as its oldest fact.
func worst(found []finding, passed string) rollout.Answer {
	a := rollout.Answer{Verdict: rollout.Pass, What: passed}
	for _, v := range []rollout.Verdict{rollout.Fail, rollout.Unknown} {
		some := slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.verdict != v })
		if len(some) > 0 {
			var texts []string
			for _, f := range some {
				texts = append(texts, f.what)
			}
			a.Verdict, a.What, found = v, list(texts), some
			break
		}
	}
	for _, f := range found {
		if !f.at.IsZero() && (a.At.IsZero() || f.at.Before(a.At)) {
			a.At = f.at
		}
	}
	return a
}

// list joins the first texts, and adds the number of the remaining ones.
func list(texts []string) string {
	texts = slices.Compact(texts)
	if more := len(texts) - named; more > 0 {
		texts = append(slices.Clone(texts[:named]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// Judge answers a gate from the owners' reports about its pools. maxAge is the maximum age of
// reports at now. Zero means any age. For a Prometheus gate it answers unknown.
func Judge(ask rollout.Ask, pools []rollout.Pool, now time.Time, maxAge time.Duration) rollout.Answer {
	j := judge{ask: ask, now: now, maxAge: maxAge, pools: make(map[rollout.ID]*rollout.Pool, len(pools))}
	for i := range pools {
		j.pools[pools[i].ID] = &pools[i]
	}
	switch g := ask.Gate; {
	case len(ask.Pools) == 0:
		return rollout.Answer{Verdict: rollout.Pass, What: "there is no pool to check", At: now}
	case g.NodesReady != nil:
		return j.nodesReady()
	case g.FailedActivities != nil:
		return j.failedActivities()
	case g.CloudWatchAlarms != nil:
		return j.alarms()
	}
	return rollout.Answer{Verdict: rollout.Unknown, What: "the gate has not been queried yet", At: now}
}

type judge struct {
	ask    rollout.Ask
	pools  map[rollout.ID]*rollout.Pool
	now    time.Time
	maxAge time.Duration
}

// each calls look for every pool whose report is about the requested hash and recent enough. For
// any other pool it adds an unknown finding with the reason.
func (j judge) each(look func(p *rollout.Pool) finding) (out []finding) {
	for _, s := range j.ask.Pools {
		p := j.pools[s.ID]
		unknown := func(format string, args ...any) {
			out = append(out, finding{rollout.Unknown, s.String() + ": " + fmt.Sprintf(format, args...), j.now})
		}
		switch {
		case p == nil:
			unknown("the member that owns it has not reported on it")
		case p.Hash == "" && p.Fault != "":
			unknown("it cannot be planned: %s", clip(p.Fault))
		case p.Hash != s.Hash:
			unknown("the member that owns it has not reported on the version of the rollout")
		case p.Facts.ReadAt.Before(j.ask.Since):
			unknown("weir has not read it since the share started at %s", clock(j.ask.Since))
		case j.maxAge > 0 && j.now.Sub(p.Facts.ReadAt) > j.maxAge:
			unknown("weir has not read it since %s", clock(p.Facts.ReadAt))
		default:
			f := look(p)
			if f.verdict != rollout.Pass {
				f.what = s.String() + ": " + f.what
			}
			if f.at.IsZero() {
				f.at = p.Facts.ReadAt
			}
			out = append(out, f)
		}
	}
	return out
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// clip shortens a foreign text, before a word.
func clip(text string) string {
	if text = strings.Join(strings.Fields(text), " "); len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:max(strings.LastIndexByte(text[:longest], ' '), 0)], "") + " …"
}
