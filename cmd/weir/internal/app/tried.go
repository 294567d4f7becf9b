package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/state"
)

var (
	// tried has failed attempts, by place, role and target.
	tried = state.Bucket[refusals.Stored]{Name: "tried"}
	// again has the targets for which somebody asked another try, until their owner takes that up.
	again = state.Bucket[time.Time]{Name: "again"}
)

// againFor is the time that the engine keeps a request for another try.
const againFor = time.Hour

// tries implements reconciler.Tries for a scope that this daemon owns.
type tries struct {
	app           *App
	place, prefix string
}

// triesOf returns nil for a daemon alone.
func (p *passes) triesOf(l *loop) reconciler.Tries {
	if l.lease == nil {
		return nil
	}
	place := l.lease.Owner.Key
	return tries{p.app, place, place + "\x00" + l.key.RoleARN + "\x00"}
}

// Recall implements reconciler.Tries.
func (t tries) Recall() (out map[string]refusals.Stored, err error) {
	err = t.app.store.View(func(tx *state.Tx) error {
		out = map[string]refusals.Stored{}
		return tried.ForEach(tx, t.prefix, func(key string, v refusals.Stored) error {
			target, is := strings.CutPrefix(key, t.prefix)
			if !is {
				return state.ErrStop
			}
			out[target] = v
			return nil
		})
	})
	return out, err
}

// Keep implements reconciler.Tries.
func (t tries) Keep(target string, v refusals.Stored) error {
	store := t.app.crew.Held(t.place)
	if store == nil {
		return fmt.Errorf("keep what was tried: %w", coord.ErrLost)
	}
	for i := range v.Refused {
		err := *v.Refused[i].Err
		err.Message = t.app.o.Secrets.Redact(err.Message)
		v.Refused[i].Err = &err
	}
	return store.Update(func(tx *state.Tx) error {
		if v.Empty() {
			return tried.Delete(tx, t.prefix+target)
		}
		return tried.Put(tx, t.prefix+target, v)
	})
}

// tryAgain asks the owners of targets to try again what failed.
func (a peers) tryAgain(targets []string) error {
	now := time.Now()
	return a.store.Update(func(tx *state.Tx) error {
		err := again.Remove(tx, func(at time.Time, err error) bool { return err != nil || now.Sub(at) > againFor })
		for _, target := range targets {
			err = errors.Join(err, again.Put(tx, target, now))
		}
		return err
	})
}

// retryAsked makes the beginning pass try again what somebody asked of any member.
func (p *passes) retryAsked(l *loop, access accounts.Access) {
	if l.lease == nil || access.Scope == nil {
		return
	}
	var targets []string
	p.mu.Lock()
	l.scope = access.Scope
	for _, d := range p.memory.batches[l.key].Targets {
		targets = append(targets, d.Policy.Target)
	}
	p.mu.Unlock()
	d := daemon{p.app}
	targets = slices.DeleteFunc(targets, func(name string) bool { return len(d.Pools(name)) == 0 }) // what has failed is not known yet
	for _, name := range (peers{p.app}).takeUp(targets) {
		p.retry(name, d.Pools(name))
	}
}

// takeUp returns the targets of a pass that somebody wants tried again, once for all members: after a crash now, somebody must ask again, as a
// rollout that starts twice costs more.
func (a peers) takeUp(targets []string) (out []string) {
	now := time.Now()
	find := func(tx *state.Tx) error {
		out = nil
		for _, target := range targets {
			if at, ok, err := again.Get(tx, target); err != nil {
				return err
			} else if ok && now.Sub(at) <= againFor {
				out = append(out, target)
			}
		}
		return nil
	}
	err := a.store.View(find)
	if err == nil && len(out) > 0 {
		err = a.store.Update(func(tx *state.Tx) error {
			err := find(tx)
			for _, target := range out {
				err = errors.Join(err, again.Delete(tx, target))
			}
			return err
		})
	}
	if err != nil {
		a.log.Error("cannot read what to try again: it waits", "error", err)
		return nil
	}
	return out
}
