package coord

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// The times of a member's life, beside those of leases.
const (
	// Grace is how long a key has no owner until other members take it than the one that placement chose.
	Grace = 5 * time.Second
	// Steady is how long placement must have given a key to another member before its owner hands it over, and Settle how long that must have owned
	// it by then: so members that come and go move nothing.
	Steady = 5 * time.Second
	Settle = 30 * time.Second
	// StuckAfter is how long work may show no progress. A member then leaves the key to others for avoidFor, unless nobody else takes it for
	// avoidGrace.
	StuckAfter = 2 * time.Minute
	avoidFor   = 10 * time.Minute
	avoidGrace = 30 * time.Second
	// StopWithin is how long work may take to stop until the keeper gives it up.
	StopWithin = 10 * time.Second
	// SlowStop is how long work may take to stop until the keeper counts on calls that it gave up: nobody has heard what became of them, and they may
	// still have their effect. The successor of a release does not wait, so the keeper does, for Quiet.
	SlowStop = 4 * time.Second
	// announceEvery is how often a member tells others its time.
	announceEvery = 30 * time.Second
	// complainEvery is the time between two logs of the same refusal of the engine.
	complainEvery = time.Minute
)

// pins is the prefix of records that say which member a person chose for a key.
const pins = "coord/pin/"

// stuckKeys is where the records begin that say which members were stuck on a key.
const stuckKeys = "coord/stuck/"

// pin is the value of such a record.
type pin struct {
	Member string    `json:"member"`
	At     time.Time `json:"at"`
}

// The kinds of Event that a Keeper reports.
const (
	Joined     = "joined"      // a session began
	Lost       = "lost"        // the session ended, and with it every lease; Err is what the engine said last, if it refused
	Took       = "took"        // a key is owned, and work on it begins
	HandedOver = "handed-over" // a key was released for another member
	Stuck      = "stuck"       // a key was released because work on it showed no progress
	Released   = "released"    // a key was released because nobody wants it here
	Refused    = "refused"     // the engine refused or did not answer
)

// Event is something that happened to a member.
type Event struct {
	Kind, Key string
	Owner     Owner
	// Before is the owner before one that took, To the member that is to take.
	Before Owner
	To     string
	Err    error
}

// KeeperOptions say who a member is, and what it does.
type KeeperOptions struct {
	Engine *Engine
	Mirror *Mirror
	Member Member
	// TTL is the lease; 0 for TTL.
	TTL time.Duration
	// Scopes returns the keys that somebody should own, with their weights. The keeper fills in the rest.
	Scopes func() []Scope
	// Run works on a key until the lease's context ends, and returns when nothing is under way. If it returns before, the keeper releases the key.
	Run func(*Lease)
	// Tell receives events; it must not block.
	Tell func(Event)
	// Random is a number below n, for delays.
	Random func(n int64) int64
}

// Keeper joins, renews, takes keys and hands them over, for one member.
type Keeper struct {
	o     KeeperOptions
	clock Clock
	kick  chan struct{}
	work  sync.WaitGroup

	mu       sync.Mutex
	session  *Session
	draining bool
	leases   map[string]*Lease
	// working is the last lease of a key whose work may not have ended.
	working map[string]*Lease
	// released is the epoch of a key's last release, avoided when a key was stuck.
	released map[string]int64
	avoided  map[string]Instant

	// Only the goroutine that steps uses the fields below.

	replaced int
	// looked is when it looked last at what there is.
	looked Instant
	// unowned is since when a key has no owner, and moved since when placement gives it to
	// another member than its owner.
	unowned  map[string]unowned
	moved    map[string]move
	proposed map[string]string
	basis    basis
	stuck    map[string]mark
	// complained has the time at which each refusal was last logged.
	complained map[string]Instant
}

// mark is a version of a record, and when this member first saw it.
type mark struct {
	version int64
	since   Instant
}

// unowned is a key without a living owner, as the last one left it.
type unowned struct {
	last  Owner
	since Instant
}

type move struct {
	to    string
	since Instant
}

// basis is the input of proposals.
type basis struct {
	now    *Snapshot
	scopes []Scope
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
	return &Keeper{
		o: o, clock: o.Engine.clock, kick: make(chan struct{}, 1),
		leases: map[string]*Lease{}, working: map[string]*Lease{}, released: map[string]int64{}, avoided: map[string]Instant{},
		unowned: map[string]unowned{}, moved: map[string]move{}, proposed: map[string]string{}, complained: map[string]Instant{},
	}
}

// Run lives until ctx ends, then hands everything over and leaves.
func (k *Keeper) Run(ctx context.Context) {
	// The session outlives ctx until everything is handed over.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	all.Go(func() { k.o.Mirror.Run(life) })
	all.Go(func() { k.renew(life) })
	all.Go(func() { k.watch(life) })
	for ctx.Err() == nil {
		synced := k.o.Mirror.Synced()
		k.step(ctx)
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
	k.work.Wait()
}

// leave hands everything over and ends the session.
func (k *Keeper) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, StopWithin+2*Quiet)
	defer cancel()
	k.drain(ctx)
	for k.holds() > 0 && k.current() != nil && sleep(ctx, 20*time.Millisecond) {
	}
	if s := k.current(); s != nil {
		if err := s.Leave(ctx); err != nil {
			k.o.Tell(Event{Kind: Refused, Err: err})
		}
	}
	k.lose()
}

// Drain hands everything over and owns nothing from now on. It returns once nothing is owned, or ctx ends: then what is still owned stays so, and the
// member takes nothing until Undrain, which may be called only after Drain has returned.
func (k *Keeper) Drain(ctx context.Context) error {
	k.drain(ctx)
	for k.holds() > 0 {
		if !sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// Undrain ends draining.
func (k *Keeper) Undrain(ctx context.Context) error {
	k.mu.Lock()
	k.draining = false
	k.mu.Unlock()
	return k.announce(ctx)
}

// drain tells others first, so that they wait for the keys that they will get, and give it none where it owns nothing.
func (k *Keeper) drain(ctx context.Context) {
	k.mu.Lock()
	k.draining = true
	leases := slices.Collect(maps.Values(k.leases))
	k.mu.Unlock()
	if len(k.o.Mirror.Snapshot().Alive) > 1 && k.announce(ctx) == nil && len(leases) > 0 {
		sleep(ctx, PollEvery+hurryEvery)
	}
	if ctx.Err() != nil {
		return
	}
	for _, l := range leases {
		k.stop(l, Event{Kind: HandedOver})
	}
}

// TakeByHand chooses this member as a key's owner, for as long as it lives.
func (k *Keeper) TakeByHand(ctx context.Context, key string) error {
	s := k.current()
	if s == nil {
		return ErrLost
	}
	op, err := Pin(key, k.o.Member.Name, k.clock.Now().Wall)
	if err != nil {
		return err
	}
	k.mu.Lock()
	delete(k.avoided, key)
	k.mu.Unlock()
	_, err = s.Write(ctx, Write{Ops: []Op{op}})
	return err
}

// Pin chooses a member as a key's owner, for as long as it lives.
func Pin(key, member string, at time.Time) (Op, error) {
	value, err := json.Marshal(pin{member, at.UTC()})
	return Op{Key: pins + key, Value: value, If: Any}, err
}

// Session is the present session, nil without one: for inputs.
func (k *Keeper) Session() *Session { return k.current() }

// Refuses is the engine's, see Engine.Refuses.
func (k *Keeper) Refuses() (since time.Time, err error) { return k.o.Engine.Refuses() }

// Lease returns that of a key if this member owns it and works on it, else nil.
func (k *Keeper) Lease(key string) *Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.leases[key]
	if l == nil || l.isStopping() {
		return nil
	}
	return l
}

func (k *Keeper) current() *Session {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.session
}

func (k *Keeper) holds() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.leases)
}

func (k *Keeper) self() Member {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.o.Member
	m.Draining = k.draining
	return m
}

// Describe publishes the member's configuration to other members.
func (k *Keeper) Describe(ctx context.Context, config string) error {
	k.mu.Lock()
	same := k.o.Member.Config == config
	k.o.Member.Config = config
	k.mu.Unlock()
	if same {
		return nil
	}
	return k.announce(ctx)
}

func (k *Keeper) announce(ctx context.Context) error {
	s := k.current()
	if s == nil {
		return nil
	}
	return s.Announce(ctx, k.self())
}

func (k *Keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// pinned returns the members that people chose, by key.
func pinned(now *Snapshot) map[string]string {
	chosen := map[string]string{}
	for _, r := range now.List(pins) {
		var p pin
		if json.Unmarshal(r.Value, &p) == nil {
			chosen[strings.TrimPrefix(r.Key, pins)] = p.Member
		}
	}
	return chosen
}
