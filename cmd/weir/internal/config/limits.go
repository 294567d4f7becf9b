package config

import (
	"fmt"
	"strconv"
)

// Limits bound what repositories and pull requests may ask for: what is above one is
// refused with a diagnostic, and nothing is deleted for it.
type Limits struct {
	// Targets is how many targets the paths of one source may stand for.
	Targets Count `yaml:"targets"`
}

// DefaultTargets is how many targets a source may have where nothing is written.
const DefaultTargets = 4_000

// maxCount is the largest Count: far more than any machine holds.
const maxCount = 1_000_000_000

// Count is a number of things, 0 where none is written.
type Count int

func (c *Count) parse(text string) error {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 1 || n > maxCount {
		return fmt.Errorf("%q is no limit; write a whole number from 1 to %d", text, maxCount)
	}
	*c = Count(n)
	return nil
}

// WithDefaults fills in what is not written.
func (l Limits) WithDefaults() Limits {
	if l.Targets == 0 {
		l.Targets = DefaultTargets
	}
	return l
}
