package world

import (
	"container/heap"
	"slices"
	"time"
)

// Timer is something that happens later. It is data, so that a saved emulator
// goes on where it stopped: kind names the function in a service's timers table,
// key says what it is about.
type Timer struct {
	Due     time.Time
	Seq     uint64
	Account string
	Region  string
	Kind    string
	Key     string
}

// timerHeap orders timers by due time, then by the order in which they were set.
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

// After lets kind happen to key in d from now. A timer cannot be taken back: the
// function that it runs must check whether anything is left to do.
func (r *Region) After(d time.Duration, kind, key string) {
	st := r.world.State
	st.TimerSeq++
	heap.Push(&st.Timers, Timer{
		Due: r.Now().Add(d), Seq: st.TimerSeq,
		Account: r.Account, Region: r.Name, Kind: kind, Key: key,
	})
}

// Next returns the timer that is due next, with the world's time set to it. When none
// is due any more until a time, it sets the world's time to that. A timer runs at the
// time at which it was due, so chains of timers come out the same whether the clock
// moves in steps or jumps.
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

// Restored brings the timers of a state that was read from JSON into order.
func (s *State) Restored() { heap.Init(&s.Timers) }

// NextBut returns the time of the next due timer that is of none of some kinds; false for none.
func (s *State) NextBut(kinds ...string) (at time.Time, ok bool) {
	for _, t := range s.Timers {
		if !slices.Contains(kinds, t.Kind) && (!ok || t.Due.Before(at)) {
			at, ok = t.Due, true
		}
	}
	return at, ok
}
