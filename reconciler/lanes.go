package reconciler

// Lanes bound how many pools of all scopes are applied at once. What waits for AWS holds its
// request and a connection, and a hundred accounts that each wait for eight answers need
// that memory for nothing: no two processors keep as many moving.
type Lanes chan struct{}

const (
	// ownLanes is the number of pools that a scope always applies at once, whatever other scopes
	// do, so that accounts with hanging calls delay no other account.
	ownLanes = 2
	// sharedLanes is the number of further pools that all scopes together apply at once.
	sharedLanes = 64
)

// NewLanes are for the scopes of a process.
func NewLanes() Lanes { return make(Lanes, sharedLanes) }

// enter waits for a lane: one of the scope's own, or one of those that all share. A nil Lanes
// has no bound.
func (l Lanes) enter(own chan struct{}) (leave func()) {
	if l == nil {
		return func() {}
	}
	taken := own
	select {
	case own <- struct{}{}:
	default:
		select {
		case own <- struct{}{}:
		case l <- struct{}{}:
			taken = l
		}
	}
	return func() { <-taken }
}
