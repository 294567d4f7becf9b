package resolve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// maxRounds bounds the rounds in which facts lead to further facts. The longest chain belongs to a network:
// cluster, its subnets, tagged subnets, VPCs, their subnets.
const maxRounds = 8

// Resolver answers requests from facts that it caches. It is safe for concurrent use. Calls run one
// after the other, because the next call can use the facts of this one.
type Resolver struct {
	cloud Cloud
	now   func() time.Time
	turn  chan struct{} // contains one token, whose owner may use facts
	facts *facts

	mu    sync.Mutex
	fresh time.Time // answers that may change are not older
}

// New returns a resolver that reads from cloud. now is nil for time.Now.
func New(cloud Cloud, now func() time.Time) *Resolver {
	if now == nil {
		now = time.Now
	}
	r := &Resolver{cloud: cloud, now: now, turn: make(chan struct{}, 1), facts: newFacts()}
	r.turn <- struct{}{}
	return r
}

// Renew makes the resolver read facts again that can change, such as the newest image of a name, if
// they are older than fresh.
func (r *Resolver) Renew(fresh time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fresh.After(r.fresh) {
		r.fresh = fresh
	}
}

func (r *Resolver) since() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fresh
}

// Answer answers each request, in order. It returns no answers and an error after a failure that may
// pass by itself.
func (r *Resolver) Answer(ctx context.Context, requests []Request) ([]observed.Answer, error) {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { r.turn <- struct{}{} }()
	now := r.now()
	r.facts.expire(now)
	r.facts.renew(r.since())
	answers := make([]observed.Answer, len(requests))
	open := make([]int, len(requests))
	for i := range open {
		open[i] = i
	}
	for range maxRounds {
		left := open[:0]
		for _, i := range open {
			q := &question{Request: &requests[i], facts: r.facts, now: now}
			a := answer(q)
			if q.waits {
				left = append(left, i)
			} else {
				answers[i] = a
			}
		}
		if open = left; len(open) == 0 {
			return answers, nil
		}
		if err := r.read(ctx); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("answer %s: facts led to further facts more than %d times", requests[open[0]].Lookup, maxRounds)
}

// question is one request in one round, with the facts at hand.
type question struct {
	*Request
	facts *facts
	now   time.Time
	// waits says that the answer needs a fact that has not been read yet. The answer of this round is then
	// meaningless.
	waits bool
}

// answer answers a question. Each kind of lookup has a type of its own.
func answer(q *question) observed.Answer {
	if q.Since.After(q.now) {
		q.Since = time.Time{} // the clock was set back
	}
	image := imageLookup{q}
	if q.Image != "" {
		return reviewedImage{image, q.Image}.answer()
	}
	if image.asked() {
		return image.answer()
	}
	switch q.Lookup.Kind {
	case intent.NodegroupRelease:
		return release(q)
	case intent.Subnets:
		return subnetLookup{q}.answer()
	case intent.CoreSecurityGroups:
		search := groupSearch{clusterSearch{question: q}}
		return search.answer()
	case intent.SecurityGroupsByFilter:
		return groupsByFilter(q)
	case intent.SecurityGroupByID:
		return groupsByID(q, q.Lookup.Name)
	case intent.EKSCluster:
		return cluster(q)
	case intent.Role, intent.RolePolicies, intent.RolePath, intent.RoleBoundary:
		return roleLookup{q}.answer()
	case intent.TemplateByName, intent.TemplateByID:
		return templateLookup{q}.answer()
	}
	return problem("unknown-lookup", "weir cannot answer the lookup "+q.Lookup.String())
}

func problem(code, text string) observed.Answer { return observed.Answer{Code: code, Problem: text} }

// know returns the value of a fact. If it has none, ok is false, and the lookup ends with the answer
// a: missing for an absent thing, a refusal, or nothing while the question waits for the fact.
func know[V any](q *question, f fact[V], missing observed.Answer) (v V, a observed.Answer, ok bool) {
	switch f.state {
	case present:
		return f.value, a, true
	case absent:
		return v, missing, false
	case refused:
		return v, refusal(f.err), false
	default:
		q.waits = true
		return v, a, false
	}
}

// refusal is the answer to a lookup that AWS refuses.
func refusal(err *observed.Error) observed.Answer {
	if err.Kind == observed.Denied {
		return problem("access-denied", "AWS denies weir access: "+err.Message)
	}
	return problem("lookup-refused", "AWS refuses the call: "+err.Error())
}

// cluster describes the EKS cluster that the lookup names.
func cluster(q *question) observed.Answer {
	c, a, ok := know(q, q.facts.clusters.get(q.Lookup.Name), noCluster(q.Lookup.Name))
	if !ok {
		return a
	}
	return observed.Answer{Cluster: &c}
}

func noCluster(name string) observed.Answer {
	return problem("cluster-not-found", "there is no EKS cluster "+name+" in this account and region")
}
