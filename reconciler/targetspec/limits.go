package targetspec

import (
	"fmt"
	"strconv"
)

// Limits bound what repositories and pull requests may ask for: input above a limit is
// refused with a diagnostic, and nothing is deleted for it.
type Limits struct {
	// Targets is how many targets the paths of one source may stand for.
	Targets Count `yaml:"targets"`
	// Pools is how many pools all targets may have together.
	Pools Count `yaml:"pools"`
	// Nodes is how many YAML nodes one render may hold. The kept parts of all renders
	// may come to eight times as many, and one pull request's changes of them to three
	// times, with 64 bytes taken as a node.
	Nodes Count `yaml:"nodes"`
}

// Defaults of Limits.
const (
	DefaultTargets = 4_000
	DefaultPools   = 10_000
	DefaultNodes   = 400_000
)

// MaxCount is the largest Count: far more than any machine holds.
const MaxCount = 1_000_000_000

// Count is a number of things, 0 where none is written.
type Count int

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Count) UnmarshalText(b []byte) error {
	text := string(b)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 1 || n > MaxCount {
		return fmt.Errorf("%q is no limit; write a whole number from 1 to %d", text, MaxCount)
	}
	*c = Count(n)
	return nil
}

// WithDefaults fills in the members that are not written.
func (l Limits) WithDefaults() Limits {
	for _, d := range []struct {
		at       *Count
		fallback Count
	}{{&l.Targets, DefaultTargets}, {&l.Pools, DefaultPools}, {&l.Nodes, DefaultNodes}} {
		if *d.at == 0 {
			*d.at = d.fallback
		}
	}
	return l
}
