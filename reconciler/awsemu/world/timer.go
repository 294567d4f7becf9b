package world

import (
	"container/heap"
	"slices"
	"time"
)

// Timer is a future event. It is data, so that a saved emulator can continue. The kind selects the function
// in a service's timers table, and the key is its subject.
type Timer struct {
	Due     time.Time
	Seq     uint64
	Account string
	Region  string
	Kind    string
	Key     string
}

// timerHeap orders timers by due time, then by the order in which they were added.
type timerHeap []Timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].Due.Equal(h[j].Due) {
		return h[i].Due.Before(h[j].Due)
	}
	return h[i].Seq < h[j].Seq
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *timerHeap) Push(x any) { *h = append(*h, x.(Timer)) }

// Pop implements [heap.Interface].
func (h *timerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// After schedules kind for key in d from now. A timer cannot be canceled, so its function must check whether
// work remains.
func (r *Region) After(d time.Duration, kind, key string) {
	st := r.world.State
	st.TimerSeq++
	heap.Push(&st.Timers, Timer{
		Due: r.Now().Add(d), Seq: st.TimerSeq,
		Account: r.Account, Region: r.Name, Kind: kind, Key: key,
	})
}

// Next returns the next due timer, and sets the world's time to its due time. If no timer is due until the
// given time, Next sets the world's time to that. A timer runs with the time at which it was due, so chains
// of timers give the same results with a clock that steps and one that jumps.
func (w *World) Next(until time.Time) (t Timer, ok bool) {
	st := w.State
	if len(st.Timers) == 0 || st.Timers[0].Due.After(until) {
		if until.After(w.Now) {
			w.Now = until
		}
		return Timer{}, false
	}
	t = heap.Pop(&st.Timers).(Timer)
	if t.Due.After(w.Now) {
		w.Now = t.Due
	}
	return t, true
}

// Restored restores the order of the timers in a state that was read from JSON.
func (s *State) Restored() { heap.Init(&s.Timers) }

// NextBut returns the time of the next timer whose kind is not one of kinds, or false if none exists.
func (s *State) NextBut(kinds ...string) (at time.Time, ok bool) {
	for _, t := range s.Timers {
		if !slices.Contains(kinds, t.Kind) && (!ok || t.Due.Before(at)) {
			at, ok = t.Due, true
		}
	}
	return at, ok
}
