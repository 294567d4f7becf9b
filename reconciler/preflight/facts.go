package preflight

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// The times for which facts are cached. The facts that a thing does not exist, or that AWS did not answer,
// expire sooner: people create what is missing and expect the finding to disappear.
const (
	negativeTTL = 30 * time.Second
	// deniedTTL is longer than negativeTTL: people rarely grant permissions, and every plan would
	// ask again without success. lateTTL is longer so that a hanging AWS delays one pass and not
	// every pass.
	deniedTTL   = 5 * time.Minute
	lateTTL     = 5 * time.Minute
	nameTTL     = 5 * time.Minute // profiles, key pairs, placement groups, target groups, keys
	groupTTL    = time.Hour
	roomTTL     = time.Minute // free addresses, running machines, reservations
	typeTTL     = 24 * time.Hour
	offeringTTL = time.Hour
	quotaTTL    = time.Hour
	imageTTL    = time.Hour
	dryRunTTL   = 5 * time.Minute
	// badTTL is the time for which a reported problem stays valid while AWS no longer answers. Otherwise one
	// throttled call would start a step that the problem holds.
	badTTL = 15 * time.Minute
)

// fact is an answer of AWS: the thing exists, it does not exist, or err explains why AWS did not answer.
type fact[V any] struct {
	value   V
	present bool
	err     *observed.Error
	asked   time.Time
	expires time.Time
	// bad says that the thing is missing or cannot be used.
	bad bool
}

// shelf contains the facts of one kind, and the keys that the next read fetches.
type shelf[V any] struct {
	ttl    time.Duration
	facts  map[string]fact[V]
	wanted map[string]bool
	// bad contains expired answers with a problem, until AWS answers again.
	bad map[string]fact[V]
}

func newShelf[V any](ttl time.Duration) *shelf[V] {
	return &shelf[V]{ttl: ttl, facts: map[string]fact[V]{}, wanted: map[string]bool{}, bad: map[string]fact[V]{}}
}

// get returns a fact. If it is unknown, the next read fetches it.
func (s *shelf[V]) get(key string) (f fact[V], known bool) {
	if f, known = s.facts[key]; !known {
		s.wanted[key] = true
	}
	return f, known
}

// drain returns the wanted keys, sorted, and removes them.
func (s *shelf[V]) drain() []string {
	keys := slices.Sorted(maps.Keys(s.wanted))
	clear(s.wanted)
	return keys
}

// put stores an answer of AWS.
func (s *shelf[V]) put(key string, v V, present bool, now time.Time) {
	delete(s.bad, key)
	s.facts[key] = fact[V]{value: v, present: present, asked: now, expires: now.Add(s.ttl)}
	if !present {
		s.condemn(key)
	}
}

// condemn marks an answer as missing or unusable. It expires soon, but stays valid while AWS does not answer
// again.
func (s *shelf[V]) condemn(key string) {
	f := s.facts[key]
	f.bad = true
	s.facts[key] = f
	s.doubt(key)
}

// fail stores why AWS did not answer.
func (s *shelf[V]) fail(key string, err *observed.Error, now time.Time) {
	ttl := negativeTTL
	switch {
	case err.Kind == observed.Denied:
		ttl = deniedTTL
	case err.Code == codeLate:
		ttl = lateTTL
	case err.Code == CodeNotDry:
		ttl = s.ttl // reported for the full time, and not tried again
	case err.Code == codeMany:
		ttl = 0 // another plan may name fewer
	}
	if was, ok := s.bad[key]; ok && now.Sub(was.asked) < badTTL {
		was.expires = now.Add(negativeTTL)
		s.facts[key] = was
		return
	}
	s.facts[key] = fact[V]{err: err, asked: now, expires: now.Add(ttl)}
}

// doubt makes a fact with a problem expire soon, because people fix the problem and expect the finding to
// disappear.
func (s *shelf[V]) doubt(key string) {
	f := s.facts[key]
	if soon := f.asked.Add(negativeTTL); soon.Before(f.expires) {
		f.expires = soon
		s.facts[key] = f
	}
}

func (s *shelf[V]) expire(now time.Time) {
	clear(s.wanted)
	maps.DeleteFunc(s.bad, func(_ string, f fact[V]) bool { return now.Sub(f.asked) >= badTTL })
	maps.DeleteFunc(s.facts, func(key string, f fact[V]) bool {
		over := !now.Before(f.expires)
		if over && f.bad {
			s.bad[key] = f
		}
		return over
	})
}

// facts contains all facts about an account and region.
type facts struct {
	profiles   *shelf[Profile] // by name
	keyPairs   *shelf[bool]
	groups     *shelf[bool] // by id
	subnets    *shelf[Subnet]
	targets    *shelf[TargetGroup]    // by ARN
	placements *shelf[PlacementGroup] // by name or id
	keys       *shelf[Key]            // as manifests name them
	types      *shelf[InstanceType]
	offerings  *shelf[[]string]      // zones, by instance type
	quotas     *shelf[float64]       // by code
	running    *shelf[[]Instance]    // by ""
	reserved   *shelf[[]Reservation] // by ""
	images     *shelf[bool]          // public images of AWS, by name
	snapshots  *shelf[int32]         // GiB, by id
	dryRuns    *shelf[*observed.Error]
}

func newFacts() *facts {
	return &facts{
		profiles: newShelf[Profile](nameTTL), keyPairs: newShelf[bool](nameTTL), groups: newShelf[bool](groupTTL), subnets: newShelf[Subnet](roomTTL),
		targets: newShelf[TargetGroup](nameTTL), placements: newShelf[PlacementGroup](nameTTL), keys: newShelf[Key](nameTTL),
		types: newShelf[InstanceType](typeTTL), offerings: newShelf[[]string](offeringTTL), quotas: newShelf[float64](quotaTTL),
		running: newShelf[[]Instance](roomTTL), reserved: newShelf[[]Reservation](roomTTL), images: newShelf[bool](imageTTL), snapshots: newShelf[int32](imageTTL), dryRuns: newShelf[*observed.Error](dryRunTTL),
	}
}

// expire forgets all facts that are too old.
func (f *facts) expire(now time.Time) {
	f.profiles.expire(now)
	f.keyPairs.expire(now)
	f.groups.expire(now)
	f.subnets.expire(now)
	f.targets.expire(now)
	f.placements.expire(now)
	f.keys.expire(now)
	f.types.expire(now)
	f.offerings.expire(now)
	f.quotas.expire(now)
	f.running.expire(now)
	f.reserved.expire(now)
	f.images.expire(now)
	f.snapshots.expire(now)
	f.dryRuns.expire(now)
}
