package awsemu

import (
	"container/heap"
	"time"
)

// timer is something that happens later. It is data, so that a saved emulator
// goes on where it stopped: kind names the function in a service's timers table,
// key says what it is about.
type timer struct {
	Due     time.Time
	Seq     uint64
	Account string
	Region  string
	Kind    string
	Key     string
}

// timerFunc runs a due timer. The region's now is the time the timer was due.
type timerFunc func(r *region, key string)

// timerHeap orders timers by due time, then by the order in which they were set.
type timerHeap []timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].Due.Equal(h[j].Due) {
		return h[i].Due.Before(h[j].Due)
	}
	return h[i].Seq < h[j].Seq
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }

// Pop implements [heap.Interface].
func (h *timerHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// after lets kind happen to key in d from now. A timer cannot be taken back: the
// function that it runs must look whether it still has something to do.
func (r *region) after(d time.Duration, kind, key string) {
	st := r.srv.state
	st.TimerSeq++
	heap.Push(&st.Timers, timer{
		Due: r.now().Add(d), Seq: st.TimerSeq,
		Account: r.Account, Region: r.Name, Kind: kind, Key: key,
	})
}

// runDue lets everything happen that is due at the clock's time, in order, and
// then sets the emulator's time to it. A timer runs at the time it was due, so
// chains of timers come out the same whether the clock moves in steps or jumps.
// The caller holds the lock.
func (s *Server) runDue() {
	until := s.clock.Now().UTC()
	for len(s.state.Timers) > 0 && !s.state.Timers[0].Due.After(until) {
		t := heap.Pop(&s.state.Timers).(timer)
		if t.Due.After(s.now) {
			s.now = t.Due
		}
		s.timerFuncs[t.Kind](s.region(t.Account, t.Region), t.Key)
	}
	if until.After(s.now) {
		s.now = until
	}
}
