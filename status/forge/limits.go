package forge

import (
	"container/list"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// seen is a bounded set. The oldest items are dropped first.
type seen struct {
	max   int
	order *list.List
	items map[string]*list.Element
}

func newSeen(n int) *seen { return &seen{max: n, order: list.New(), items: map[string]*list.Element{}} }

// add adds a key, and reports whether it was already present.
func (s *seen) add(key string) bool {
	if e, ok := s.items[key]; ok {
		s.order.MoveToFront(e)
		return true
	}
	s.items[key] = s.order.PushFront(key)
	if s.order.Len() > s.max {
		oldest := s.order.Back()
		delete(s.items, s.order.Remove(oldest).(string))
	}
	return false
}

// drop removes a key.
func (s *seen) drop(key string) {
	if e, ok := s.items[key]; ok {
		s.order.Remove(e)
		delete(s.items, key)
	}
}

// The rate limits of one address. A forge sends bursts of events from one address, so the limit of
// deliveries is generous. The limit of failed ones is not.
const (
	requestsPerSecond = 100
	requestBurst      = 2000
	failuresPerSecond = 1
	failureBurst      = 20
	// addresses is the maximum number of addresses in memory. An address that was dropped starts from zero,
	// as after a restart.
	addresses = 1024
)

// visitors contains the rate limits by address.
type visitors struct {
	mu    sync.Mutex
	order *list.List
	items map[netip.Prefix]*list.Element
}

type visitor struct {
	from     netip.Prefix
	requests *rate.Limiter
	failures *rate.Limiter
}

func newVisitors() *visitors {
	return &visitors{order: list.New(), items: map[netip.Prefix]*list.Element{}}
}

// peer returns the address of a request's connection, the zero address if it cannot be parsed.
func peer(req *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(req.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr()
}

// addressOf returns the unit in which addresses are counted. For IPv6 it is a /64 network, because a
// machine can use all of its addresses. All requests without an address are counted together.
func addressOf(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

func (v *visitors) visitorFor(from netip.Prefix) *visitor {
	if e, ok := v.items[from]; ok {
		v.order.MoveToFront(e)
		return e.Value.(*visitor)
	}
	n := &visitor{from: from, requests: rate.NewLimiter(requestsPerSecond, requestBurst), failures: rate.NewLimiter(failuresPerSecond, failureBurst)}
	v.items[from] = v.order.PushFront(n)
	if v.order.Len() > addresses {
		oldest := v.order.Remove(v.order.Back()).(*visitor)
		delete(v.items, oldest.from)
	}
	return n
}

// admit reports whether an address may send a delivery.
func (v *visitors) admit(origin netip.Addr, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	from := v.visitorFor(addressOf(origin))
	return from.failures.TokensAt(now) >= 1 && from.requests.AllowN(now, 1)
}

// failed counts a delivery without a valid signature.
func (v *visitors) failed(origin netip.Addr, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.visitorFor(addressOf(origin)).failures.AllowN(now, 1)
}
