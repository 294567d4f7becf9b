//go:build !linux

package coord

import "time"

// sinceBoot is unknown here: the wall clock shows a sleep.
func sinceBoot() time.Duration { return 0 }
