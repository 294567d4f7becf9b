package resolve

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// state is the result of reading a fact.
type state int

const (
	// unread: the fact was never read, or is too old.
	unread state = iota
	present
	// absent: AWS says that there is no such thing.
	absent
	// refused: AWS refused the call; err has the reason.
	refused
)

// fact is one answer of AWS.
type fact[V any] struct {
	state   state
	value   V
	err     *observed.Error
	read    time.Time
	expires time.Time
}

// cache holds the facts of one kind, and the keys that the next read fetches.
type cache[K cmp.Ordered, V any] struct {
	ttl time.Duration
	// passing reports whether a value is about to change; nil means that none is.
	passing func(V) bool
	facts   map[K]fact[V]
	wanted  map[K]bool
}

func newCache[K cmp.Ordered, V any](ttl time.Duration) *cache[K, V] {
	return &cache[K, V]{ttl: ttl, facts: map[K]fact[V]{}, wanted: map[K]bool{}}
}

// get returns the fact k. The next read fetches it if it is unread.
func (s *cache[K, V]) get(k K) fact[V] {
	f, ok := s.facts[k]
	if !ok {
		s.wanted[k] = true
	}
	return f
}

// since is get, but a fact that was read before a moment is unread.
func (s *cache[K, V]) since(k K, moment time.Time) fact[V] {
	if f, ok := s.facts[k]; ok && f.read.Before(moment) {
		delete(s.facts, k)
	}
	return s.get(k)
}

// drain returns the wanted keys in order and removes them.
func (s *cache[K, V]) drain() []K {
	keys := slices.Sorted(maps.Keys(s.wanted))
	clear(s.wanted)
	return keys
}

func (s *cache[K, V]) put(k K, v V, now time.Time) {
	ttl := s.ttl
	if s.passing != nil && s.passing(v) {
		ttl = min(ttl, passingTTL)
	}
	s.facts[k] = fact[V]{state: present, value: v, read: now, expires: now.Add(ttl)}
}

func (s *cache[K, V]) putAbsent(k K, now time.Time) {
	s.facts[k] = fact[V]{state: absent, read: now, expires: now.Add(min(s.ttl, negativeTTL))}
}

func (s *cache[K, V]) putRefused(k K, err *observed.Error, now time.Time) {
	s.facts[k] = fact[V]{state: refused, err: err, read: now, expires: now.Add(min(s.ttl, negativeTTL))}
}

// expire drops facts that are too old.
func (s *cache[K, V]) expire(now time.Time) {
	maps.DeleteFunc(s.facts, func(_ K, f fact[V]) bool { return !now.Before(f.expires) })
}

// renew drops facts that were read before fresh.
func (s *cache[K, V]) renew(fresh time.Time) {
	maps.DeleteFunc(s.facts, func(_ K, f fact[V]) bool { return f.read.Before(fresh) })
}

// facts holds all facts about an account and region. A key with several parts is one string, so that
// it is comparable.
type facts struct {
	parameters    *cache[string, string]
	images        *cache[string, Image]         // by id
	reviewed      *cache[string, Image]         // by id; expire soon
	namedImages   *cache[string, []Image]       // by imageKey
	architectures *cache[string, string]        // by instance type
	vpcs          *cache[string, []VPC]         // by ""
	subnets       *cache[string, Subnet]        // by id
	subnetsIn     *cache[string, []Subnet]      // by VPC id
	subnetsOf     *cache[string, []Subnet]      // by cluster tag name
	subnetsWith   *cache[string, []Subnet]      // by filters
	groups        *cache[string, SecurityGroup] // by id
	groupsOf      *cache[string, []SecurityGroup]
	groupsWith    *cache[string, []SecurityGroup]
	clusters      *cache[string, observed.EKSCluster]
	roles         *cache[string, Role]
	rolePolicies  *cache[string, []string] // by role
	templates     *templateCache
}

// newFacts returns empty caches, each with the time for which its facts stay valid.
func newFacts() *facts {
	f := &facts{
		parameters:    newCache[string, string](movingImageTTL),
		images:        newCache[string, Image](imageTTL),
		reviewed:      newCache[string, Image](movingImageTTL),
		namedImages:   newCache[string, []Image](movingImageTTL),
		architectures: newCache[string, string](instanceTypeTTL),
		vpcs:          newCache[string, []VPC](networkTTL),
		subnets:       newCache[string, Subnet](networkTTL),
		subnetsIn:     newCache[string, []Subnet](networkTTL),
		subnetsOf:     newCache[string, []Subnet](networkTTL),
		subnetsWith:   newCache[string, []Subnet](networkTTL),
		groups:        newCache[string, SecurityGroup](groupTTL),
		groupsOf:      newCache[string, []SecurityGroup](networkTTL),
		groupsWith:    newCache[string, []SecurityGroup](networkTTL),
		clusters:      newCache[string, observed.EKSCluster](clusterTTL),
		roles:         newCache[string, Role](roleTTL),
		rolePolicies:  newCache[string, []string](rolePolicyTTL),
		templates:     newTemplateCache(),
	}
	f.clusters.passing = func(c observed.EKSCluster) bool { return c.Status != "ACTIVE" }
	return f
}

// expire forgets all facts that are too old.
func (f *facts) expire(now time.Time) {
	f.parameters.expire(now)
	f.images.expire(now)
	f.reviewed.expire(now)
	f.namedImages.expire(now)
	f.architectures.expire(now)
	f.vpcs.expire(now)
	f.subnets.expire(now)
	f.subnetsIn.expire(now)
	f.subnetsOf.expire(now)
	f.subnetsWith.expire(now)
	f.groups.expire(now)
	f.groupsOf.expire(now)
	f.groupsWith.expire(now)
	f.clusters.expire(now)
	f.roles.expire(now)
	f.rolePolicies.expire(now)
	f.templates.expire(now)
}

// renew drops facts from before fresh whose lookups have a level (plan.LevelOf): they can change.
func (f *facts) renew(fresh time.Time) {
	f.parameters.renew(fresh)
	f.namedImages.renew(fresh)
	f.clusters.renew(fresh)
	f.templates.byName.renew(fresh)
	f.templates.byID.renew(fresh)
}

// imageKey returns an image query by name as one string.
func imageKey(owner, name, architecture string) string {
	return intent.JoinFilters([]intent.Filter{
		{Name: "owner", Values: []string{owner}},
		{Name: "name", Values: []string{name}},
		{Name: "architecture", Values: []string{architecture}},
	})
}

func splitImageKey(key string) ImageQuery {
	var q ImageQuery
	for _, f := range intent.SplitFilters(key) {
		switch f.Name {
		case "owner":
			q.Owner = f.Values[0]
		case "name":
			q.Name = f.Values[0]
		case "architecture":
			q.Architecture = f.Values[0]
		}
	}
	return q
}
