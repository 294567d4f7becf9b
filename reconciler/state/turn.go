package state

import "sync"

// Turn is a mutex that may be locked during a write to a store. Such a write may wait for an engine if
// several members share the records. Unlike a wait for a sync.Mutex, a wait for a Turn lets the simulated
// time of testing/synctest advance.
type Turn struct {
	once sync.Once
	held chan struct{}
}

func (t *Turn) made() chan struct{} {
	t.once.Do(func() { t.held = make(chan struct{}, 1) })
	return t.held
}

// Lock locks the Turn.
func (t *Turn) Lock() { t.made() <- struct{}{} }

// TryLock locks the Turn if it is unlocked.
func (t *Turn) TryLock() bool {
	select {
	case t.made() <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock unlocks the Turn.
func (t *Turn) Unlock() { <-t.made() }
