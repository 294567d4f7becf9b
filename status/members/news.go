package members

import (
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/status/events"
)

// A member that stops releases hundreds of scopes within seconds. The announcement of a move waits until
// newsQuiet has passed without a further move, at most for newsMost.
const (
	newsQuiet = 2 * time.Second
	newsMost  = 15 * time.Second
	// namedKeys is the maximum number of keys in an event.
	namedKeys = 10
)

// News announces moves. It combines similar moves into one event with their number. It announces events
// about the member as a whole at once.
type News struct {
	self string
	tell func(events.Event)

	mu     sync.Mutex
	groups []*group
	timer  *time.Timer
	began  time.Time
	over   bool
}

// group contains similar moves: of scopes or of sources, of the same kind, from and to the same members.
type group struct {
	kind, event, before, to string

	first coord.Event
	at    time.Time
	keys  []string
}

// NewNews returns the News of the member self. It calls tell with one event after another; tell must not
// call News.
func NewNews(self string, tell func(events.Event)) *News { return &News{self: self, tell: tell} }

// Add adds an event, and reports whether it will be announced. Moves of the same kind within a short time
// are announced together.
func (n *News) Add(e coord.Event) bool {
	now := time.Now()
	event, ok := EventOf(e, n.self, now)
	if !ok {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	kind, move, moved := MoveOf(e)
	if !moved || n.over {
		n.tell(event)
		return true
	}
	g := n.group(kind, move, e.Before.Member, e.To)
	if len(g.keys) == 0 {
		g.first, g.at = e, now
	}
	g.keys = append(g.keys, e.Key)
	if n.timer == nil {
		n.began = now
		n.timer = time.AfterFunc(newsQuiet, n.flush)
	} else if wait := min(newsQuiet, newsMost-now.Sub(n.began)); wait > 0 {
		n.timer.Reset(wait)
	}
	return true
}

func (n *News) group(kind, event, before, to string) *group {
	for _, g := range n.groups {
		if g.kind == kind && g.event == event && g.before == before && g.to == to {
			return g
		}
	}
	g := &group{kind: kind, event: event, before: before, to: to}
	n.groups = append(n.groups, g)
	return g
}

func (n *News) flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.groups {
		event, _ := counted(g.first, n.self, g.at, len(g.keys))
		if len(g.keys) > 1 {
			event.Facts["keys"] = strings.Join(g.keys[:min(len(g.keys), namedKeys)], ", ")
		}
		n.tell(event)
	}
	n.groups, n.timer = nil, nil
}

// Close announces waiting moves. Later moves are announced individually and at once.
func (n *News) Close() {
	n.mu.Lock()
	n.over = true
	if n.timer != nil {
		n.timer.Stop()
	}
	n.mu.Unlock()
	n.flush()
}
