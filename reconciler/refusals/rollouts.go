package refusals

import (
	"slices"
	"strings"
	"time"
)

// RolloutsFor is the time for which weir remembers the start of a rollout.
const RolloutsFor = 6 * time.Hour

// RolloutKey names a rollout of a pool from a revision to a configuration.
func RolloutKey(target, pool, revision, rollout string) string {
	return strings.Join([]string{target, pool, revision, rollout}, separator)
}

// Started adds the start of a rollout.
func (r *Record) Started(key string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view.rollouts == nil {
		r.view.rollouts = map[string][]time.Time{}
	}
	r.view.rollouts[key] = append(slices.Clone(r.view.rollouts[key]), now)
}

// Started counts the starts of a rollout within a time.
func (v View) Started(key string, within time.Duration, now time.Time) int {
	n := 0
	for _, at := range v.rollouts[key] {
		if now.Sub(at) < within {
			n++
		}
	}
	return n
}
