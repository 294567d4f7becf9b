package state

import "sync"

// Turn is a mutex that may be held while a store is written, which is to wait for an engine
// where several weirs share the records. To wait for a Turn is then to wait for an answer, as
// time that testing/synctest simulates knows it: it stands still where a sync.Mutex is waited
// for.
type Turn struct {
	once sync.Once
	held chan struct{}
}

func (t *Turn) made() chan struct{} {
	t.once.Do(func() { t.held = make(chan struct{}, 1) })
	return t.held
}

// Lock locks it.
func (t *Turn) Lock() { t.made() <- struct{}{} }

// TryLock locks it if nobody has.
func (t *Turn) TryLock() bool {
	select {
	case t.made() <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock unlocks it.
func (t *Turn) Unlock() { <-t.made() }
