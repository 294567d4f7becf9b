package targetspec

import (
	"fmt"
	"strconv"
)

// Limits bound the size of what repositories and pull requests contain. weir rejects input above a
// limit with a diagnostic, and deletes nothing because of it.
type Limits struct {
	// Targets is the maximum number of targets that the paths of one source match.
	Targets Count `yaml:"targets"`
	// Pools is the maximum number of pools of all targets together.
	Pools Count `yaml:"pools"`
	// Nodes is the maximum number of YAML nodes in one render. All stored renders together may have
	// eight times as many, and the changes of one pull request three times as many. 64 bytes count
	// as one node.
	Nodes Count `yaml:"nodes"`
}

// Defaults of Limits.
const (
	DefaultTargets = 4_000
	DefaultPools   = 10_000
	DefaultNodes   = 400_000
)

// MaxCount is the largest Count.
const MaxCount = 1_000_000_000

// Count is a positive number of things, 0 if not set.
type Count int

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Count) UnmarshalText(b []byte) error {
	text := string(b)
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < 1 || n > MaxCount {
		return fmt.Errorf("%q is not a valid limit: write a whole number from 1 to %d", text, MaxCount)
	}
	*c = Count(n)
	return nil
}

// WithDefaults sets the defaults of unset limits.
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
