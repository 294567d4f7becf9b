package resolve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// maxRounds bounds how often facts may lead to further facts. The longest chain
// is a network's: cluster, its subnets, tagged subnets, VPCs, their subnets.
const maxRounds = 8

// Resolver answers requests from facts that it keeps. It is safe for concurrent
// use; calls wait for each other, because one call's facts serve the next.
type Resolver struct {
	cloud Cloud
	now   func() time.Time
	turn  chan struct{} // holds one token: its holder may touch facts
	facts *facts

	mu    sync.Mutex
	fresh time.Time // what moves was asked then, or later
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

// Renew makes answers that may change by tomorrow be asked for again where they are
// older than fresh.
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

// Answer answers each request, in order. Its error is a failure that may pass by
// itself: nothing was answered then.
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
			a := q.answer()
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

// question is the work on one request. It waits where a fact is yet to be read;
// what it returns then means nothing.
type question struct {
	*Request
	facts *facts
	now   time.Time
	waits bool
	// tried says in order what was looked at for a network, for the error.
	tried []string
}

func (q *question) answer() observed.Answer {
	if q.Since.After(q.now) {
		q.Since = time.Time{} // of a clock that was set back since
	}
	if q.Image != "" {
		return q.reviewed(q.Image)
	}
	if a, asks := q.image(); asks {
		return a
	}
	switch q.Lookup.Kind {
	case intent.NodegroupRelease:
		return q.release()
	case intent.Subnets:
		return q.subnets()
	case intent.CoreSecurityGroups:
		return q.coreSecurityGroups()
	case intent.SecurityGroupsByFilter:
		return q.securityGroupsByFilter()
	case intent.SecurityGroupByID:
		return q.givenGroups(q.Lookup.Name)
	case intent.EKSCluster:
		return q.cluster()
	case intent.Role, intent.RolePolicies, intent.RolePath, intent.RoleBoundary:
		return q.role()
	case intent.TemplateByName, intent.TemplateByID:
		return q.template()
	}
	return problem("unknown-lookup", "weir cannot answer the lookup "+q.Lookup.String())
}

// image answers a lookup of an image; asks is false where it is another one.
func (q *question) image() (a observed.Answer, asks bool) {
	switch q.Lookup.Kind {
	case intent.ImageByID:
		return q.bootable(func() observed.Answer { return q.imageByID(q.Lookup.Name, "it was written as ami.id") }), true
	case intent.ImageByParameter:
		return q.bootable(func() observed.Answer { return q.imageByParameter(q.Lookup.Name) }), true
	case intent.ImageForEKS:
		return q.imageForEKS(), true
	case intent.ImageByName:
		return q.imageByName(), true
	}
	return observed.Answer{}, false
}

func problem(code, text string) observed.Answer { return observed.Answer{Code: code, Problem: text} }

// know reads a fact. ok is false without a value; a is then the answer to return, unless the
// question waits. missing is the answer for an absent thing.
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

// refusal is the answer where AWS would not say.
func refusal(err *observed.Error) observed.Answer {
	if err.Kind == observed.Denied {
		return problem("access-denied", "AWS does not let weir look: "+err.Message)
	}
	return problem("lookup-refused", "AWS refuses the question: "+err.Error())
}

func (q *question) cluster() observed.Answer {
	c, a, ok := know(q, q.facts.clusters.get(q.Lookup.Name), noCluster(q.Lookup.Name))
	if !ok {
		return a
	}
	return observed.Answer{Cluster: &c}
}

func noCluster(name string) observed.Answer {
	return problem("cluster-not-found", "there is no EKS cluster "+name+" in this account and region")
}
