package coord

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// The times of a member's life, in addition to the times of leases.
const (
	// If a key has had no owner for Grace, members take it even if placement chose another member.
	Grace = 5 * time.Second
	// An owner hands a key over once placement has named another member for Steady, and the owner has owned
	// it for Settle or a person chose the new owner. So members that come and go cause no handovers.
	Steady = 5 * time.Second
	Settle = 30 * time.Second
	// If work makes no progress for StuckAfter, the member releases the key and does not take it again for
	// avoidFor. It takes the key earlier if no other member takes it within avoidGrace.
	StuckAfter = 2 * time.Minute
	avoidFor   = 10 * time.Minute
	avoidGrace = 30 * time.Second
	// StopWithin bounds the time that work may take to stop. After that the member releases the key anyway.
	StopWithin = 10 * time.Second
	// If work takes longer than SlowStop to stop, it may have abandoned calls to AWS that can still take
	// effect. The next owner starts right after the release, so the member waits for Quiet before it releases
	// the key.
	SlowStop = 4 * time.Second
	// announceEvery is the interval at which a member publishes its clock.
	announceEvery = 30 * time.Second
	// complainEvery is the time between two events of the same refusal.
	complainEvery = time.Minute
)

// The kinds of Event that a Keeper reports.
const (
	Joined     = "joined"      // a session started
	Lost       = "lost"        // the session ended, and all its leases; Err is the engine's last error, if any. With a Key, only its lease ended
	Took       = "took"        // the member owns a key, and the work on it starts
	HandedOver = "handed-over" // a key was released for another member
	Stuck      = "stuck"       // a key was released because the work on it made no progress
	Released   = "released"    // a key was released because no member needs to own it, or the work on it gave up
	Refused    = "refused"     // the engine refused a request or did not answer
)

// Event is something that happened to a member.
type Event struct {
	Kind, Key string
	Owner     Owner
	// Before is the previous owner of a key that was taken. To is the member for which a key was released.
	Before Owner
	To     string
	Err    error
}

// KeeperOptions describe a member and its work.
type KeeperOptions struct {
	Engine *Engine
	Mirror *Mirror
	Member Member
	// TTL is the length of the lease; zero stands for the constant TTL.
	TTL time.Duration
	// Scopes returns the keys that some member should own, with their weights. The keeper fills in the other
	// fields.
	Scopes func() []Scope
	// Run works on a key until the lease's context ends, and returns when nothing is in progress. If it
	// returns earlier, the keeper releases the key.
	Run func(*Lease)
	// Tell receives events. It must not block.
	Tell func(Event)
	// Random returns a number below n, for delays.
	Random func(n int64) int64
}

// Keeper runs one member: in every step it joins if it has no session, and takes, keeps or hands over each
// key as assignment decides.
type Keeper struct {
	o            KeeperOptions
	clock        Clock
	registration *registration
	workers      *workers
	avoided      *avoidance
	placement    *placement
	// kick starts the next step.
	kick chan struct{}

	// Only the goroutine of the steps uses the fields below.

	assignment *assignment
	stuck      *stuckRecords
	refusals   *refusals
	// replaced counts the replacements of the engine until the last step.
	replaced int
}

// NewKeeper makes the keeper of a member that has not joined yet.
func NewKeeper(o KeeperOptions) *Keeper {
	if o.TTL == 0 {
		o.TTL = TTL
	}
	if o.Tell == nil {
		o.Tell = func(Event) {}
	}
	if o.Random == nil {
		o.Random = rand.Int64N
	}
	name, clock := o.Member.Name, o.Engine.clock
	k := &Keeper{o: o, clock: clock, kick: make(chan struct{}, 1), avoided: &avoidance{since: map[string]Instant{}}, placement: &placement{owners: map[string]string{}}}
	k.registration = &registration{engine: o.Engine, mirror: o.Mirror, ttl: o.TTL, tell: o.Tell, wake: k.wake, member: o.Member}
	k.workers = &workers{clock: clock, run: o.Run, tell: o.Tell, avoided: k.avoided, wake: k.wake, last: map[string]*Lease{}}
	k.workers.draining = func() bool { return k.registration.self().Draining }
	k.assignment = &assignment{member: name, random: o.Random, vacant: map[string]vacancy{}, moving: map[string]move{}}
	k.stuck, k.refusals = &stuckRecords{member: name}, &refusals{clock: clock, tell: o.Tell, last: map[string]Instant{}}
	return k
}

// Run runs the member until ctx ends. It then hands everything over and leaves.
func (k *Keeper) Run(ctx context.Context) {
	// The session outlives ctx until everything is handed over.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	all.Go(func() { k.o.Mirror.Run(life) })
	all.Go(func() { k.registration.renew(life) })
	all.Go(func() { k.registration.watch(life) })
	for ctx.Err() == nil {
		synced := k.o.Mirror.Synced()
		k.round(ctx)
		timer := time.NewTimer(PollEvery)
		select {
		case <-synced:
		case <-k.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	k.leave(life)
	end()
	all.Wait()
	k.workers.running.Wait()
}

// wake starts the next step.
func (k *Keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// leave hands everything over and ends the session.
func (k *Keeper) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, StopWithin+2*Quiet)
	defer cancel()
	k.drain(ctx)
	for k.registration.count() > 0 && sleep(ctx, 20*time.Millisecond) {
	}
	if s := k.registration.session(); s != nil {
		if err := s.Leave(ctx); err != nil {
			k.o.Tell(Event{Kind: Refused, Err: err})
		}
	}
	k.registration.end()
}

// Drain hands everything over and takes nothing until Undrain. It returns once the member owns nothing, or
// when ctx ends; keys that were not handed over by then stay with the member. Undrain may be called only
// after Drain has returned.
func (k *Keeper) Drain(ctx context.Context) error {
	k.drain(ctx)
	for k.registration.count() > 0 {
		if !sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// Undrain lets the member take keys again.
func (k *Keeper) Undrain(ctx context.Context) error {
	k.registration.setDraining(false)
	return k.registration.announce(ctx)
}

// drain stops the work on all keys. Before that, it tells the other members that this one drains: they then
// wait for the keys that they will get, and give it no new ones.
func (k *Keeper) drain(ctx context.Context) {
	k.registration.setDraining(true)
	var leases []*Lease
	if held := k.registration.current(); held != nil {
		leases = held.all()
	}
	if len(k.o.Mirror.Snapshot().Alive) > 1 && k.registration.announce(ctx) == nil && len(leases) > 0 {
		sleep(ctx, PollEvery+hurryEvery)
	}
	if ctx.Err() != nil {
		return
	}
	for _, l := range leases {
		k.workers.stop(l, Event{Kind: HandedOver})
	}
}

// Describe publishes the member's configuration to the other members.
func (k *Keeper) Describe(ctx context.Context, config string) error {
	if !k.registration.setConfig(config) {
		return nil
	}
	return k.registration.announce(ctx)
}

// Session returns the current session, nil without one. It is for writes as a member, not as an owner.
func (k *Keeper) Session() *Session { return k.registration.session() }

// Refuses returns the reason why the engine refuses writes, and the time of the first refusal. See
// Engine.Refuses.
func (k *Keeper) Refuses() (since time.Time, err error) { return k.o.Engine.Refuses() }

// Trouble returns why the engine refused the last write or could not be read. It returns nil if neither happened.
func (k *Keeper) Trouble() error { return k.registration.trouble() }

// Lease returns the lease of a key if this member owns the key and works on it, else nil.
func (k *Keeper) Lease(key string) *Lease {
	held := k.registration.current()
	if held == nil {
		return nil
	}
	l := held.get(key)
	if l == nil || l.isStopping() {
		return nil
	}
	return l
}

// View describes a member and its copy of the records.
type View struct {
	Member   Member
	Session  string
	Left     time.Duration
	Snapshot *Snapshot
	// Age is the age of the snapshot, negative without a snapshot.
	Age time.Duration
	// Proposed is the member that placement proposes for each key.
	Proposed map[string]string
	// Works lists the keys that the member works on, in order.
	Works []string
	Err   error
}

// View returns the member's current view.
func (k *Keeper) View() View {
	v := View{Member: k.registration.self(), Snapshot: k.o.Mirror.Snapshot(), Age: -1, Err: k.o.Mirror.Err(), Proposed: k.placement.proposed()}
	if age, ever := k.o.Mirror.Age(); ever {
		v.Age = age
	}
	held := k.registration.current()
	if held == nil {
		return v
	}
	v.Session, v.Left = held.session.ID(), held.session.Left()
	for _, l := range held.all() {
		if !l.isStopping() {
			v.Works = append(v.Works, l.Owner.Key)
		}
	}
	slices.Sort(v.Works)
	return v
}

// refusals reports refusals of the engine, each at most once every complainEvery.
type refusals struct {
	clock Clock
	tell  func(Event)
	// last is when the refusal of each key was last reported.
	last map[string]Instant
}

// report reports a refusal about a key; an empty key stands for the session.
func (r *refusals) report(key string, err error) {
	now := r.clock.Now()
	if last, reported := r.last[key]; reported && now.AtLeast(last) < complainEvery {
		return
	}
	r.last[key] = now
	r.tell(Event{Kind: Refused, Key: key, Err: err})
}

// accepted notes that the engine accepted a request about a key.
func (r *refusals) accepted(key string) { delete(r.last, key) }
