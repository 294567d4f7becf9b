package reconciler

import "slices"

// skippedSlots remembers the slots that the last apply did not start.
type skippedSlots struct {
	keys map[string]bool // by slotKey
	// overtaken says that something newer was the cause.
	overtaken bool
}

// sort puts skipped slots first: pools whose calls hang in every pass must not keep those behind them
// waiting. If something newer was the cause, it puts them last, because a newer commit does not wait
// for all that an earlier one has left.
func (s skippedSlots) sort(slots []slot) {
	slices.SortStableFunc(slots, func(a, b slot) int {
		switch first := s.keys[a.key] != s.overtaken; {
		case s.keys[a.key] == s.keys[b.key]:
			return 0
		case first:
			return -1
		}
		return 1
	})
}
