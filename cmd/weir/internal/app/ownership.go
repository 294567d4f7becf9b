package app

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/crew"
	"github.com/weir-gitops/weir/cmd/weir/internal/handover"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/partition"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source/fault"
)

// If several daemons share the work of an instance, each composes all that Git wants, passes over the scopes that it owns, and speaks for the sources
// that it owns. A daemon alone has no crew, and of this the fence alone.

// peers is the daemon's part that deals with the other members of its instance.
type peers struct{ *App }

// openCrew reads the records of an instance that several daemons share.
func (a peers) openCrew(ctx context.Context) (err error) {
	self := coord.Member{Name: cmp.Or(a.o.Member, crew.Name()), Version: a.o.Version, Address: addressOf(a.o.Config), Config: a.o.Config.Common()}
	var random func(int64) int64
	if a.o.Rand != nil {
		random = func(n int64) int64 { return int64(a.o.Rand() * float64(n)) }
	}
	a.crew, err = crew.Open(ctx, crew.Options{Random: random, Engine: a.o.Engine, Member: self, Logger: a.log, Scopes: a.keys, Begin: a.begin, Work: a.work, Tell: a.moved(self.Name), First: a.readKeys})
	if err != nil {
		return err
	}
	a.store = a.crew.Store()
	a.dispatcher = handover.New(handover.Options{
		Kind: cmp.Or(a.o.Config.Coordination.Engine(), "memory"), Member: self.Name, Keeper: a.crew.Keeper(), Mirror: a.crew.Mirror(), Wanted: a.wanted, Logger: a.log,
	})
	return nil
}

// keys returns what somebody should own: the sources, and the known accounts and regions for which Git wants something.
func (a peers) keys() (out []coord.Scope) {
	g := a.gen.Load()
	if g == nil {
		return nil
	}
	weights := map[string]int{}
	for _, f := range g.followers {
		weights[f.key()] = 1
	}
	a.passes.mu.Lock()
	defer a.passes.mu.Unlock()
	for key, pools := range a.passes.weights {
		weights[key] += max(1, pools)
	}
	for place := range a.passes.kept {
		weights[place] = max(1, weights[place])
	}
	for key, weight := range weights {
		out = append(out, coord.Scope{Key: key, Weight: weight})
	}
	slices.SortFunc(out, func(x, y coord.Scope) int { return cmp.Compare(x.Key, y.Key) })
	return out
}

// begin begins to work on a key that this daemon owns from now on.
func (a peers) begin(l *coord.Lease) {
	if crew.IsSource(l.Owner.Key) {
		a.speak(l.Owner.Key)
	} else {
		a.passes.own(l.Owner.Key)
	}
}

// work returns when the lease has ended; work under way then ends by itself.
func (a peers) work(l *coord.Lease) {
	look := time.NewTicker(progressEvery)
	defer look.Stop()
	for {
		if a.goesOn(l.Owner.Key, time.Now()) {
			l.Progress()
		}
		select {
		case <-l.Context().Done():
			return
		case <-look.C:
		}
	}
}

// goesOn reports whether the work on a key makes progress: if not, another member may reach what this one cannot.
func (a peers) goesOn(key string, now time.Time) bool {
	if !crew.IsSource(key) {
		return a.passes.goesOn(key, now) && a.upToDate(key)
	}
	for _, f := range a.gen.Load().followers {
		if f.key() == key && !f.reads() {
			return false
		}
	}
	return true
}

// upToDate reports whether this member has the commits to apply in an account and region. Another may reach the Git server that this one does not.
func (a peers) upToDate(place string) bool {
	sources := map[string]bool{}
	a.passes.mu.Lock()
	for key, b := range a.passes.memory.batches {
		if at, known := a.passes.place(key); known && at == place {
			for i := range b.Targets {
				sources[b.Targets[i].Source] = true
			}
		}
	}
	a.passes.mu.Unlock()
	for name, f := range a.gen.Load().followers {
		if head, known := a.crew.Head(f.view.ID, name); sources[name] && known && head.Commit != f.At() {
			return false
		}
	}
	return true
}

// reads reports whether Git answers. A faulty commit is faulty for all members.
func (f *follower) reads() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.view.Err == nil {
		return true
	}
	switch fault.ReasonOf(f.view.Err) {
	case fault.Unreachable, fault.Timeout, fault.AuthFailed, fault.UntrustedHost, fault.Storage:
		return false
	default:
		return true
	}
}

// progressEvery is the interval at which the daemon checks that passes make progress. noAnswer is
// the time without an answer from AWS after which a pass counts as stuck.
const (
	progressEvery = 5 * time.Second
	noAnswer      = 15 * time.Second
)

// key returns the key of the lease under which this daemon reads and owns a source.
func (f *follower) key() string { return crew.SourceKey(f.view.ID) }

// place returns the key of a scope's account and region; false while the account is unknown.
func (p *passes) place(key reconciler.ScopeKey) (string, bool) {
	account := p.app.accounts.Probably(key)
	if account == "" || key.Region == "" {
		return "", false
	}
	return crew.ScopeKey(partition.Of(key.Region).ID, account, key.Region, key.Endpoint), true
}

// weigh counts the work of each account and region. The caller holds mu.
func (p *passes) weigh() {
	if p.app.crew == nil {
		return
	}
	before, found := slices.AppendSeq(slices.Collect(maps.Keys(p.weights)), maps.Keys(p.kept)), p.unfound
	p.weights, p.kept, p.unfound = map[string]int{}, map[string]reconciler.ScopeKey{}, map[reconciler.ScopeKey]bool{}
	for key, b := range p.memory.batches {
		place, known := p.place(key)
		if !known {
			if p.unfound[key] = found[key]; !found[key] {
				p.keep(before, key)
			}
			p.find(key)
			continue
		}
		for i := range b.Targets {
			if set := b.Targets[i].Set; set != nil {
				p.weights[place] += len(set.Pools)
			}
		}
		p.weights[place] += 0 // even if nothing is rendered
	}
}

// keep keeps the leases of places in which a scope may be. While AWS is asked for the account of
// new credentials, which were configured in place of a role and may belong to the same account,
// nothing is released and no other member takes the place. The caller holds mu.
func (p *passes) keep(places []string, key reconciler.ScopeKey) {
	for _, place := range places {
		if words := strings.Split(place, "/"); len(words) > 2 && crew.ScopeKey(partition.Of(key.Region).ID, words[2], key.Region, key.Endpoint) == place {
			p.kept[place] = key
		}
	}
}

// find asks AWS for a scope's account, and wakes the conductor once that is known. The caller holds mu.
func (p *passes) find(key reconciler.ScopeKey) {
	if p.finding[key] || key.Region == "" {
		return
	}
	p.finding[key] = true
	p.seeking.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, findWithin)
		defer cancel()
		access := p.app.accounts.Open(ctx, key)
		p.mu.Lock()
		delete(p.finding, key)
		if access.Account == "" {
			p.unfound[key] = true
			maps.DeleteFunc(p.kept, func(_ string, of reconciler.ScopeKey) bool { return of == key })
		}
		if !p.needs(key) && p.memory.batches != nil {
			p.app.accounts.Forget(key)
		}
		p.mu.Unlock()
		if access.Account != "" {
			p.app.wake()
			return
		}
		if access.Err != nil && ctx.Err() == nil {
			p.app.log.Warn("cannot open an account, so nobody can own it", "region", key.Region, "role", key.RoleARN, "error", access.Err)
		}
	})
}

const findWithin = 30 * time.Second

// own starts the loops of an account and region that this daemon owns from now on.
func (p *passes) own(place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.memory.batches {
		if at, known := p.place(key); known && at == place && p.of[key] == nil {
			p.startLoop(key)
		}
	}
}

// lease returns a loop's lease; ok says that the loop may start. The caller calls done when it has ended.
func (p *passes) lease(key reconciler.ScopeKey) (l *coord.Lease, done func(), ok bool) {
	if p.app.crew == nil {
		return nil, func() {}, true
	}
	place, known := p.place(key)
	if !known {
		return nil, nil, false
	}
	l, done = p.app.crew.Use(place)
	return l, done, l != nil
}

// under makes a loop pass under a lease: it ends with that, and looks often at first, as calls of the previous owner may still have their effect.
func (p *passes) under(l *loop, lease *coord.Lease) {
	l.Watchful, l.Reporter = coord.TTL, owned{p.app.reporter, lease}
	context.AfterFunc(lease.Context(), l.leave)
}

// goesOn reports whether no pass of an account and region hangs.
func (p *passes) goesOn(place string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, l := range p.of {
		if l.lease == nil || l.lease.Owner.Key != place {
			continue
		}
		began := l.Began()
		if answered := p.app.accounts.Answered(key); answered.After(began) {
			began = answered
		}
		if !l.Began().IsZero() && now.Sub(began) > noAnswer {
			return false
		}
	}
	return true
}

// owns reports whether this daemon passes over a target. The caller holds mu.
func (p *passes) owns(target string) bool {
	return slices.ContainsFunc(p.memory.scopesOf(target), func(key reconciler.ScopeKey) bool { return p.of[key] != nil })
}

// witness takes in what AWS holds of the instance in an account, whose number need not be configured, and region. What is known of another one says
// nothing of it.
func (p *passes) witness(account string, key reconciler.ScopeKey) func(holds bool) error {
	return func(holds bool) error {
		return p.passing(state.Witness(p.app.store, account+"/"+key.Region+key.Endpoint, holds))
	}
}

// passing marks an error as temporary if an engine does not answer, or if another daemon owns the
// account and region by now: the commit has not failed.
func (p *passes) passing(err error) error {
	var loss *state.LossError
	if err == nil || p.app.crew == nil || errors.As(err, &loss) {
		return err
	}
	kind := observed.Transient
	if errors.Is(err, coord.ErrLost) {
		kind = observed.Fenced
	}
	return &observed.Error{Service: "coordination", Operation: "write", Code: "NotStored", Message: err.Error(), Kind: kind, Err: err}
}
