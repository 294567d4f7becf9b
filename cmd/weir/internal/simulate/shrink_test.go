package simulate

import (
	"slices"
	"testing"
)

// Shrink leaves out decisions of a failed run for as long as it fails without them, in at
// most so many runs, and returns what has to be left out, and the run that remains.
func Shrink(t *testing.T, o Options, failed Result, runs int) (Options, Result) {
	t.Helper()
	o.Log = nil
	for size := (len(failed.Decisions) + 1) / 2; size > 0 && runs > 0; {
		smaller := false
		for begin := 0; begin < len(failed.Decisions) && runs > 0; {
			part := failed.Decisions[begin:min(begin+size, len(failed.Decisions))]
			try := o
			try.Leave = slices.Clone(o.Leave)
			for _, d := range part {
				try.Leave = append(try.Leave, d.Step)
			}
			runs--
			if r := Run(t, try); len(r.Failed) > 0 {
				o, failed, smaller = try, r, true
				continue
			}
			begin += size
		}
		if !smaller || size > len(failed.Decisions) {
			size /= 2
		}
	}
	return o, failed
}
